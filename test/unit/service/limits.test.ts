import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { connect, errorOf, startServer } from "./test-server.ts";

const mebibyte = Buffer.alloc(1024 * 1024, 0x20);

describe("limits of an answer", () => {
  it("cuts a 200 MB page early, with bounded memory", async () => {
    let sentBytes = 0;
    const server = await startServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const write = () => {
        while (sentBytes < 200 * mebibyte.length && !response.destroyed) {
          sentBytes += mebibyte.length;
          if (!response.write(mebibyte)) {
            response.once("drain", write);
            return;
          }
        }
        response.end();
      };
      write();
    });
    const before = process.memoryUsage.rss();
    const error = await errorOf(connect(server.url, { bodyBytesMax: 2 * mebibyte.length }).getActivities());
    expect(error).toMatchObject({ kind: "contract", code: "BODY_TOO_LARGE", status: 200 });
    expect(sentBytes).toBeLessThan(60 * mebibyte.length);
    expect(process.memoryUsage.rss() - before).toBeLessThan(150 * 1024 * 1024);
  });

  it.each([true, false])("counts decoded bytes, so a gzip bomb is cut (with Content-Length: %s)", async (hasLength) => {
    const bomb = gzipSync(Buffer.alloc(150 * mebibyte.length));
    const server = await startServer((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip", ...(hasLength ? { "content-length": bomb.length } : {}) });
      response.end(bomb);
    });
    const before = process.memoryUsage.rss();
    const error = await errorOf(connect(server.url).getActivities());
    expect(error).toMatchObject({ kind: "contract", code: "BODY_TOO_LARGE" });
    expect(process.memoryUsage.rss() - before).toBeLessThan(120 * 1024 * 1024);
  });

  it("accepts a body of exactly the limit and refuses one byte more", async () => {
    let length = 1_000;
    const server = await startServer((_, response) => response.end(`{"value":[]}${" ".repeat(length - 12)}`));
    const service = connect(server.url, { bodyBytesMax: 1_000 });
    expect((await service.getActivities()).items).toEqual([]);
    length = 1_001;
    expect(await errorOf(service.getActivities())).toMatchObject({ kind: "contract" });
  });

  it("ends an answer that drips by the time-out of the whole request", async () => {
    const server = await startServer((_, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    });
    const service = connect(server.url, { timeouts: { requestMs: 1_000 } });
    expect(await errorOf(service.getActivities())).toMatchObject({ kind: "answer-lost", code: "ETIMEDOUT (request)" });
    expect(await errorOf(service.getActivities({}, { timeoutMs: 1_000 }))).toMatchObject({ kind: "answer-lost" });
  });

  it("ends an answer that never starts by the time-out of the answer", async () => {
    const server = await startServer(() => {});
    const error = await errorOf(connect(server.url, { timeouts: { responseMs: 100 } }).getActivities());
    expect(error).toMatchObject({ kind: "answer-lost", code: "ETIMEDOUT (response)" });
  });

  it("never takes a truncated page for a page, wherever it is cut", async () => {
    const text = '{"@odata.context":"x","value":[{"a":1},{"a":"é"}],"@odata.nextLink":"?p=2"}';
    const bytes = Buffer.from(text);
    let cut = 0;
    let how: "short" | "chunked" | "length" = "short";
    const server = await startServer((_, response, raw) => {
      const part = bytes.subarray(0, cut);
      if (how === "short") response.end(part);
      else {
        if (how === "length") response.setHeader("content-length", bytes.length);
        response.flushHeaders();
        response.write(part, () => raw.socket.end());
      }
    });
    const service = connect(server.url);
    for (cut = 1; cut < bytes.length; cut += 1) {
      how = "short";
      expect(await errorOf(service.getActivities())).toMatchObject({ kind: "contract", status: 200 });
      if (cut % 9 !== 0) continue;
      for (how of ["chunked", "length"] as const) {
        expect(await errorOf(service.getActivities())).toMatchObject({
          kind: "answer-lost",
          sent: "maybe",
          status: 200,
        });
      }
    }
  });

  it("refuses a page of more than 10,000 items and reads one of 10,000", async () => {
    let count = 10_000;
    const server = await startServer((_, response) => response.end(JSON.stringify({ value: Array(count).fill({}) })));
    const service = connect(server.url);
    expect((await service.getActivities()).items).toHaveLength(10_000);
    count = 10_001;
    expect(await errorOf(service.getActivities())).toMatchObject({ kind: "contract" });
  });
});
