// The e-mail sink against a real mail server with TLS.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EmailSettings } from "../../../src/config/policy-set.ts";
import { withoutKnownSecrets } from "../../../src/core/secrets.ts";
import type { Notice } from "../../../src/model/notice.ts";
import { createEmailSink, tryEmail } from "../../../src/notify/email.ts";
import { createAuthority } from "../../support/certificates.ts";
import { login, refusal, startMailServer } from "../../support/mail-server.ts";
import { noticeOf } from "../../support/receiver.ts";

const never = new AbortController().signal;
const send = (settings: EmailSettings, notice: Notice = noticeOf("a"), signal = never) =>
  createEmailSink(settings).deliver(notice, signal);

describe("the e-mail sink", () => {
  it.each([true, false])("sends one message over TLS, also after STARTTLS (implicit: %s)", async (secure) => {
    const { mails, settings, passwordFile } = await startMailServer({ secure });
    const to = ["ops@example.com", "boss@example.com"];
    expect(await send({ ...settings, to, user: login.user, passwordFile })).toMatchObject({
      type: "taken",
      status: 250,
    });
    expect(mails).toMatchObject([{ to, user: "syncline", isSecure: true }]);
    const raw = mails[0]?.raw ?? "";
    expect(raw).toContain("Subject: nightly: failed\r\n");
    expect(raw).toContain("To: ops@example.com, boss@example.com\r\n");
    expect(raw).toContain("Auto-Submitted: auto-generated\r\n");
    expect(raw).toContain("Date: Sat, 21 Nov 2026 02:30:00 +0000\r\n");
    expect(raw).toContain("policy: nightly\r\nservice: main\r\ntime: 2026-11-21 02:30:00Z");
  });

  it("gives a repeated notice the same Message-ID, and another one another", async () => {
    const { mails, settings } = await startMailServer();
    for (const id of ["a", "a", "b"]) await send(settings, noticeOf(id));
    const [first, again, other] = mails.map(
      ({ raw }) => /^Message-ID: (<[0-9a-f]{32}@example\.com>)\r$/m.exec(raw)?.[1],
    );
    expect(first).toBeDefined();
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });

  it("lets no name with line breaks add a header, a recipient or a line", async () => {
    const { mails, settings } = await startMailServer();
    const evil = "x\r\nBcc: evil@example.com\r\n\r\nhello\n.\r\nRCPT TO:<evil@example.com>";
    const data = { detail: evil, items: [{ id: 1, label: evil }] };
    await send(settings, { ...noticeOf(evil), title: evil, policy: evil, data });
    expect(mails).toMatchObject([{ to: ["ops@example.com"] }]);
    const [headers = "", ...body] = (mails[0]?.raw ?? "").split("\r\n\r\n");
    expect(headers).not.toMatch(/^(bcc|hello)/im);
    expect(body.join("\r\n\r\n")).not.toMatch(/^(bcc|hello|\.|rcpt)/im);
  });

  it("sends nothing to a server whose certificate another authority signed", async () => {
    const { mails, settings, folder } = await startMailServer();
    const caFile = join(folder, "other.pem");
    writeFileSync(caFile, (await createAuthority("Another")).cert);
    for (const tls of [
      { caFile, serverName: undefined },
      { caFile: undefined, serverName: undefined },
    ])
      expect(await send({ ...settings, tls })).toMatchObject({
        type: "later",
        reason: expect.stringMatching(/its certificate is signed by an authority that is not trusted/),
      });
    const named = { ...settings, tls: { ...settings.tls, serverName: "mail.example.com" } };
    expect(await send(named)).toMatchObject({ type: "later", reason: expect.stringMatching(/for another host/) });
    expect(mails).toEqual([]);
  });

  it("sends nothing, and no password, to a server without STARTTLS", async () => {
    const seen: string[] = [];
    const { mails, settings, passwordFile } = await startMailServer({
      ...{ secure: false, disabledCommands: ["STARTTLS"], allowInsecureAuth: true },
      onAuth: ({ username = "" }, _session, done) => {
        seen.push(username);
        done(null, { user: username });
      },
    });
    const receipt = await send({ ...settings, user: login.user, passwordFile });
    expect(receipt).toMatchObject({ type: "later", reason: expect.stringMatching(/^no TLS at port \d+: \S/) });
    expect([mails, seen]).toEqual([[], []]);
  });

  it("says which of the two ways of TLS a port wants", async () => {
    const inClear = await startMailServer({ secure: false });
    expect(await send({ ...inClear.settings, startTls: false })).toMatchObject({
      type: "later",
      reason: expect.stringMatching(/set email\.startTls to true for port \d+/),
    });
    const { settings } = await startMailServer();
    expect(await send({ ...settings, startTls: true, timeoutMs: 5_000 })).toMatchObject({
      type: "later",
      reason: expect.stringMatching(/set email\.startTls to false for port \d+/),
    });
  });

  it("asks for more time when a server does not greet, and names TLS as an if", async () => {
    const { settings } = await startMailServer({ secure: false, onConnect: () => {} });
    const reason = /^no greeting within 2 s: a slow server needs a longer email\.timeout, .* only if that wants TLS/;
    const receipt = { type: "later", reason: expect.stringMatching(reason) };
    expect(await send({ ...settings, timeoutMs: 4_000 })).toEqual(receipt);
  });

  it("waits when the sign-in is refused, and never shows the password", async () => {
    const { mails, settings, passwordFile } = await startMailServer();
    writeFileSync(passwordFile, "canary-password");
    const own = { ...settings, user: login.user, passwordFile };
    expect(await send(own)).toEqual({
      ...{ type: "later", status: 535, reason: "the sign-in was refused with status 535" },
      said: "535 bad credentials",
    });
    expect(withoutKnownSecrets("canary-password")).toBe("[…]");
    expect(await tryEmail(own)).toBe("the sign-in was refused with status 535");
    writeFileSync(passwordFile, `${login.password}\n`);
    expect(await tryEmail(own)).toBeUndefined();
    expect(await tryEmail({ ...own, passwordFile: "/nowhere" })).toMatch(/\/nowhere cannot be read \(ENOENT\)/);
    expect(mails).toEqual([]);
  });

  it("sends nothing unsigned to a server that offers no sign-in", async () => {
    const { mails, settings, passwordFile } = await startMailServer({ disabledCommands: ["AUTH"] });
    expect(await send({ ...settings, user: login.user, passwordFile })).toMatchObject({ type: "later" });
    expect(mails).toEqual([]);
  });

  it.each([
    [450, "later"],
    [550, "refused"],
  ])("to a recipient that is answered with %d says %s", async (status, type) => {
    const { settings } = await startMailServer({ onRcptTo: (_, __, done) => done(refusal(status, "no such user")) });
    expect(await send(settings)).toMatchObject({ type, status, reason: `answered with status ${status}` });
  });

  it("tells which recipients were refused when others were not", async () => {
    const { mails, settings } = await startMailServer({
      onRcptTo: ({ address }, _, done) => (address.startsWith("old") ? done(refusal(550, "gone")) : done()),
    });
    const receipt = await send({ ...settings, to: ["ops@example.com", "old@example.com"] });
    expect(receipt).toMatchObject({ type: "taken", refusedFor: ["old@example.com: 550 gone"] });
    expect(mails).toMatchObject([{ to: ["ops@example.com"] }]);
  });

  it("gives up waiting for a server that hangs, and ends at once when told to stop", async () => {
    const { settings } = await startMailServer({ onData: (stream) => void stream.resume() });
    // Half of it is for the greeting, which comes late on a busy machine.
    expect(await send({ ...settings, timeoutMs: 8_000 })).toEqual({ type: "later", reason: "no answer within 8 s" });
    const stopping = new AbortController();
    const sending = send({ ...settings, timeoutMs: 60_000 }, noticeOf("a"), stopping.signal);
    stopping.abort();
    expect(await sending).toEqual({ type: "stopped" });
  });
});
