// A mail server on 127.0.0.1 with TLS: keeps the messages that came, refuses what it is told to.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { onTestFinished } from "vitest";
import type { EmailSettings } from "../../src/config/policy-set.ts";
import { createAuthority, signedBy } from "./certificates.ts";
import { folderForTest } from "./folder.ts";

const authority = createAuthority("Mail Authority");
const certificate = authority.then((one) => signedBy(one));

/** One message as it came. */
interface Mail {
  readonly to: readonly string[];
  readonly user: string | undefined;
  readonly isSecure: boolean;
  readonly raw: string;
}

/** Who may sign in. */
export const login = { user: "syncline", password: "correct-horse-battery" };

/** A reply that refuses. */
export function refusal(status: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode: status });
}

/** Starts a mail server that ends with the test, with settings of a sink that reach it. */
export async function startMailServer(options: SMTPServerOptions = {}) {
  const mails: Mail[] = [];
  const { cert, key } = await certificate;
  const server = new SMTPServer({
    ...{ cert, key, secure: true, disableReverseLookup: true, authOptional: true, closeTimeout: 1 },
    onAuth: ({ username, password }, _session, done) =>
      username === login.user && password === login.password
        ? done(null, { user: username })
        : done(refusal(535, "bad credentials")),
    onData: (stream, { envelope, secure, user }, done) => {
      const to = envelope.rcptTo.map(({ address }) => address);
      void text(stream).then((raw) => {
        mails.push({ to, user, isSecure: secure, raw });
        done();
      });
    },
    ...options,
  });
  // Broken handshakes are what some tests are about.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(resolve)));
  const folder = folderForTest();
  const [caFile, passwordFile] = [join(folder, "ca.pem"), join(folder, "password")];
  writeFileSync(caFile, (await authority).cert);
  writeFileSync(passwordFile, `${login.password}\n`);
  const { port } = server.server.address() as { port: number };
  const settings: EmailSettings = {
    ...{ kind: "email", host: "127.0.0.1", port, startTls: options.secure === false, from: "syncline@example.com" },
    ...{ to: ["ops@example.com"], user: undefined, passwordFile: undefined, timeoutMs: 30_000 },
    tls: { caFile, serverName: undefined },
  };
  return { server, mails, settings, passwordFile, folder };
}
