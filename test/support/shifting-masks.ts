// A service of masks in pages of two by `$skip`, and a client of it. A test changes the list while
// it is read: what is deleted then moves the rest over the page boundaries. Ends with its test.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { SyncService, staticToken } from "../../src/service/client.ts";

/** A mask as the service lists it. */
export interface ListedMask {
  readonly maskId: number;
  readonly syncJobId: number;
}

/** Starts it over these masks, changed in place. `afterFirst`: called after each first page. */
export async function shiftingMasks(masks: ListedMask[], afterFirst: () => void): Promise<SyncService> {
  const server = createServer(({ url = "" }, response) => {
    const from = Number(/skip=(\d+)/.exec(url)?.[1] ?? 0);
    const next = from + 2 < masks.length ? { "@odata.nextLink": `${url.split("?")[0]}?$skip=${from + 2}` } : {};
    response.end(JSON.stringify({ value: masks.slice(from, from + 2), ...next }));
    if (from === 0) afterFirst();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = new SyncService({ baseUrl, token: staticToken("secret"), retries: 0 });
  onTestFinished(() => {
    service.close();
    server.close();
  });
  return service;
}
