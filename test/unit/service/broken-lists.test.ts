import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SyncService, staticToken } from "../../../src/service/client.ts";

let server: Server;
let service: SyncService;
let body = "";

beforeAll(async () => {
  server = createServer((_request, response) => response.setHeader("content-type", "application/json").end(body));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  service = new SyncService({ baseUrl, token: staticToken("t"), retries: 0 });
});
afterAll(() => {
  service.close();
  server.closeAllConnections();
  server.close();
});

describe("a list with status 200 that is no good list", () => {
  it("ends in a contract error when the service failed while it was writing", async () => {
    for (const error of ['{"code":"500","message":"lost the database"}', '"lost the database"']) {
      body = `{"value":[{"approvalId":1}],"error":${error}}`;
      await expect(service.getApprovals()).rejects.toMatchObject({ kind: "contract", status: 200 });
    }
  });

  it.each(["[", '{"a":'])("ends in a contract error when it nests 200,000 times %s", async (open) => {
    const close = open === "[" ? "]" : "}";
    body = `{"value":[{"x":${open.repeat(200_000)}1${close.repeat(200_000)}}]}`;
    await expect(service.getActivities()).rejects.toMatchObject({ kind: "contract" });
  });

  it("may hold brackets in its texts, however many", async () => {
    body = JSON.stringify({ value: [{ approvalId: 1, itemName: `${"[{".repeat(500)}"\\` }] });
    expect((await service.getApprovals()).items).toHaveLength(1);
  });
});
