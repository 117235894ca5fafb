// Figures of a benchmark: what Redis says about itself during a benchmark: commands run (those of
// scripts too), CPU, memory. Reads only, but for the reset.
import type { Redis } from "ioredis";

/** Commands since the last reset, by name, those that scripts call included. */
export async function commandCalls(redis: Redis): Promise<Map<string, number>> {
  const info = await redis.info("commandstats");
  return new Map(
    [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name = "", calls]) => [name, Number(calls)]),
  );
}

/** CPU that Redis has used, in milliseconds. */
export async function redisCpuMs(redis: Redis): Promise<number> {
  const info = await redis.info("cpu");
  const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  return (seconds("used_cpu_sys") + seconds("used_cpu_user")) * 1_000;
}

/** Bytes that Redis holds. */
export async function redisBytes(redis: Redis): Promise<number> {
  const info = await redis.info("memory");
  return Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
}

/** The value in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** The value below which this share (0 to 1) of the values lies; NaN of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Milliseconds on the clock that all processes of the machine share and nobody sets. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1_000_000;
}
