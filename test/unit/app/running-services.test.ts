import { expect, it, vi } from "vitest";
import { RunningServices, type ServiceConsumers } from "../../../src/app/running-services.ts";
import type { ServiceSettings } from "../../../src/config/policy-set.ts";
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
    ended: () => step.promise,
  };
  const close = vi.fn();
  const services = new RunningServices({
    services: new Map([["main", {} as ServiceSettings]]),
    createClient: () => ({ close }) as unknown as SyncService,
    log: silentLog,
    retireAfterMs: 0,
  });
  services.consume({ createConsumers: () => consumers, pending: async () => 0 });
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
