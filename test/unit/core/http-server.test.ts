import { expect, it } from "vitest";
import { startHttpServer } from "../../../src/core/http-server.ts";

it("a server that stops ends the answers under way, and cuts what stays open", async () => {
  const asked = Promise.withResolvers<void>();
  const mayAnswer = Promise.withResolvers<void>();
  const limits = { requestMsMax: 10_000, headerBytesMax: 16_384, connectionsMax: 10 };
  const server = await startHttpServer(
    { name: "the server", host: "127.0.0.1", port: 0, ...limits },
    async ({ url }, response) => {
      if (url === "/never") return asked.resolve();
      await mayAnswer.promise;
      response.end("done");
    },
  );
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${server.port}${path}`)).text();
  const slow = ask("/slow");
  const never = expect(ask("/never")).rejects.toThrow();
  await asked.promise;
  const stopping = server.stop();
  mayAnswer.resolve();
  expect(await slow).toBe("done");
  await Promise.all([never, stopping]);
});
