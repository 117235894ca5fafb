import { expect, it, onTestFinished, vi } from "vitest";
import { RunningServices, type ServiceConsumers } from "../../../src/app/running-services.ts";
import type { ServiceSettings } from "../../../src/config/policy-set.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import type { SyncService } from "../../../src/service/client.ts";

/** A service with one step that its client's end cuts off. `note`: ends what the step does then. */
function startStep() {
  const step = Promise.withResolvers<void>();
  const consumers: ServiceConsumers = {
    name: "consumers",
    start: async () => {},
    stop: async () => {},
    resize: () => {},
  };
  const close = vi.fn();
  const services = new RunningServices({
    services: new Map([["main", {} as ServiceSettings]]),
    createClient: () => ({ close }) as unknown as SyncService,
    onAdopted: () => {},
    log: silentLog,
    retireAfterMs: 0,
  });
  const queues = { pending: async () => 0, tidy: async () => 0 };
  services.consume({ createConsumers: () => consumers, ended: () => step.promise, queues });
  return { services, close, note: step.resolve };
}

it("a stop waits for the step that it cut off, which notes the lost answer", async () => {
  const { services, close, note } = startStep();
  const ended = vi.fn();
  const stopping = services.stop().then(ended);
  await vi.waitFor(() => expect(close).toHaveBeenCalledOnce());
  await new Promise(setImmediate);
  expect(ended).not.toHaveBeenCalled();
  note();
  await stopping;
});

it("a stop waits for a step without an end no longer than a second", async () => {
  vi.useFakeTimers();
  try {
    const { services } = startStep();
    const stopping = services.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    await stopping;
  } finally {
    vi.useRealTimers();
  }
});

it("a changed service's old client may end two requests, however long they take", async () => {
  const over = Promise.withResolvers<void>();
  const sleep = vi.spyOn(systemClock, "sleep").mockReturnValue(over.promise);
  onTestFinished(() => sleep.mockRestore());
  const close = vi.fn();
  const settings = (concurrency: number) => ({ concurrency, requestTimeoutMs: 600_000 }) as ServiceSettings;
  const services = new RunningServices({
    services: new Map([["main", settings(1)]]),
    createClient: () => ({ close }) as unknown as SyncService,
    onAdopted: () => {},
    log: silentLog,
    retireAfterMs: 0,
  });
  services.adopt(new Map([["main", settings(2)]]));
  expect(sleep).toHaveBeenCalledWith(60_000 + 1_200_000, expect.anything());
  expect(close).not.toHaveBeenCalled();
  over.resolve();
  await vi.waitFor(() => expect(close).toHaveBeenCalledOnce());
});

it("a stop lets a changed service's old client end the steps in work", async () => {
  const drained = Promise.withResolvers<void>();
  const close = vi.fn();
  const settings = (concurrency: number) => ({ concurrency, requestTimeoutMs: 600_000 }) as ServiceSettings;
  const services = new RunningServices({
    services: new Map([["main", settings(1)]]),
    createClient: ({ concurrency }) => ({ close: () => close(concurrency) }) as unknown as SyncService,
    onAdopted: () => {},
    log: silentLog,
    retireAfterMs: 0,
  });
  const consumers = { name: "consumers", start: async () => {}, resize: () => {} };
  services.consume({
    createConsumers: () => ({ ...consumers, stop: () => drained.promise }),
    ended: async () => {},
    queues: { pending: async () => 0, tidy: async () => 0 },
  });
  services.adopt(new Map([["main", settings(2)]]));
  const stopping = services.stop();
  await new Promise(setImmediate);
  expect(close).not.toHaveBeenCalled();
  drained.resolve();
  await stopping;
  expect(close.mock.calls.flat().toSorted()).toEqual([1, 2]);
});

it("services that cannot all be adopted change nothing, and leave no client open", () => {
  const closed: string[] = [];
  const adopted: string[] = [];
  const settings = (name: string, concurrency: number) => ({ name, concurrency }) as ServiceSettings;
  const services = new RunningServices({
    services: new Map([["main", settings("main", 1)]]),
    createClient: ({ name }) => {
      if (name === "tokenless") throw new Error("there is no token");
      return { close: () => closed.push(name) } as unknown as SyncService;
    },
    onAdopted: ({ name, concurrency }) => adopted.push(`${name} ${concurrency}`),
    log: silentLog,
    retireAfterMs: 0,
  });
  const client = services.client("main");
  const newer = [settings("main", 2), settings("tokenless", 1)];
  expect(() => services.adopt(new Map(newer.map((one) => [one.name, one])))).toThrow("there is no token");
  expect([adopted, closed]).toEqual([["main 1"], ["main"]]);
  expect(services.client("main")).toBe(client);
});
