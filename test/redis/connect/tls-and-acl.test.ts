import { beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../../src/store/redis.ts";
import { aclCommands } from "../../support/redis-acl.ts";
import { openFixture, useEverything } from "../../support/redis-round-trip.ts";
import { clientOf, freePort, makeCertificate, startServer } from "../../support/redis-servers.ts";

const prefix = "{syncline}";
const own = await makeCertificate();
const stranger = await makeCertificate();
const tlsPort = await freePort();

beforeAll(async () => {
  const tls = ["--tls-port", `${tlsPort}`, "--tls-cert-file", own.certFile, "--tls-key-file", own.keyFile];
  const server = await startServer({ args: [...tls, "--tls-ca-cert-file", own.certFile] });
  const admin = clientOf(server.port);
  await admin.call("ACL", "SETUSER", "syncline", "on", ">secret", "resetchannels", `~${prefix}*`, ...aclCommands());
  await admin.call("ACL", "SETUSER", "default", "off");
});

const url = `rediss://127.0.0.1:${tlsPort}`;
const withUser = `rediss://syncline@127.0.0.1:${tlsPort}`;

describe("Redis over TLS, with a user that may touch Syncline's keys only", () => {
  it("does everything that Syncline needs, with the rights that docs/running.md names", async () => {
    const access = { password: "secret", ca: own.cert, cert: own.cert, key: own.key };
    const fixture = await openFixture({ url: withUser, prefix, access });
    try {
      await useEverything(fixture);
      await expect.poll(() => fixture.guard.reasons()).toEqual([]);
      expect(fixture.log.named("queue.unreachable")).toEqual([]);
      await expect(fixture.store.redis.get("foreign")).rejects.toThrow("NOPERM");
      await expect(fixture.store.redis.flushall()).rejects.toThrow("NOPERM");
    } finally {
      await fixture.stop();
    }
  });

  it("takes the password from the URL as well", async () => {
    const access = { ca: own.cert, cert: own.cert, key: own.key };
    const store = await openStore({ url: url.replace("//", "//syncline:secret@"), prefix, access });
    await store.close();
  });

  it.each([
    [
      "a server whose certificate nobody vouches for",
      { cert: own.cert, key: own.key, password: "secret" },
      /self.signed/i,
    ],
    [
      "a server that shows another certificate",
      { ca: stranger.cert, cert: own.cert, key: own.key, password: "secret" },
      /self.signed|signature/i,
    ],
    ["a client without a certificate", { ca: own.cert, password: "secret" }, /certificate|closed|ECONNRESET|EPIPE/i],
    [
      "a wrong password",
      { ca: own.cert, cert: own.cert, key: own.key, password: "canary-wrong" },
      /refuses this user or password \(WRONGPASS\)/,
    ],
  ])("refuses %s and says why, without a secret", async (_, access, reason) => {
    const failure = await openStore({ url: withUser, prefix, access }).then(
      () => "it opened",
      (error: unknown) => String(error),
    );
    expect(failure).toMatch(reason);
    expect(failure).not.toContain("canary-wrong");
  });
});
