// The e-mail sink: one plain-text message per notice, over TLS only, as nodemailer speaks SMTP. The
// reply code decides what becomes of the notice (docs/notifications.md). `syncline doctor` and
// `syncline sinks test` sign in without a message. It never shows the password.
import { createTransport, type NodemailerError } from "nodemailer";
import type { EmailSettings } from "../config/policy-set.ts";
import { toPlainText } from "../core/plain-text.ts";
import { noteSecret } from "../core/secrets.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Notice } from "../model/notice.ts";
import { TlsFiles, TlsFilesError, tlsHint } from "../service/tls-files.ts";
import { readBounded } from "../service/token.ts";
import { mailText } from "./render-notice.ts";
import type { Receipt, Sink } from "./sink.ts";

const passwordBytesMax = 4_096;
const saidCharactersMax = 200;
const subjectCharactersMax = 300;
const replyBytesMax = 64 * 1024;

type OpenResult = { readonly mailer: ReturnType<typeof connect> } | { readonly reason: string };

/** Makes an e-mail sink. It opens nothing yet. */
export function createEmailSink(settings: EmailSettings): Sink {
  const tls = new TlsFiles(settings.tls);
  return {
    deliver: async (notice, signal) => {
      const opened = await open(settings, tls);
      if ("reason" in opened) return { type: "later", reason: opened.reason };
      const limit = AbortSignal.any([signal, AbortSignal.timeout(settings.timeoutMs)]);
      try {
        const { response, rejectedErrors = [] } = await opened.mailer.sendMail({
          ...toMail(notice, settings),
          signal: limit,
        });
        const refusedFor = rejectedErrors.map(({ recipient, response: why }) => `${recipient}: ${plain(why)}`);
        return {
          ...{ type: "taken", status: Number(response.slice(0, 3)), said: plain(response) },
          ...(refusedFor.length === 0 ? {} : { refusedFor }),
        };
      } catch (error) {
        tls.expire();
        return signal.aborted ? { type: "stopped" } : toReceipt(error as NodemailerError, settings);
      }
    },
    close: () => {},
  };
}

/** Connects and signs in, and sends nothing. Returns what went wrong; undefined: it worked. */
export async function tryEmail(settings: EmailSettings): Promise<string | undefined> {
  const opened = await open(settings, new TlsFiles(settings.tls));
  if ("reason" in opened) return opened.reason;
  try {
    await opened.mailer.verify();
    return undefined;
  } catch (error) {
    const receipt = toReceipt(error as NodemailerError, settings);
    return "reason" in receipt ? receipt.reason : undefined;
  }
}

/** Reads the password and the certificates for each try: rotated ones apply at once. */
async function open(settings: EmailSettings, tls: TlsFiles): Promise<OpenResult> {
  const { user, passwordFile } = settings;
  let password = "";
  if (passwordFile !== undefined) {
    const read = await readBounded(passwordFile, passwordBytesMax);
    if ("code" in read)
      return { reason: `password file ${passwordFile} cannot be read (${read.code}): check the path and its rights` };
    password = read.text.replace(/\r?\n$/, "");
    if (password === "") return { reason: `password file ${passwordFile} is empty` };
    noteSecret(password);
  }
  try {
    const auth = user === undefined ? {} : { forceAuth: true, auth: { user, pass: password } };
    return { mailer: connect(settings, { ...auth, tls: { ...(await tls.current()), minVersion: "TLSv1.2" } }) };
  } catch (error) {
    if (!(error instanceof TlsFilesError)) throw error;
    return { reason: error.message };
  }
}

function connect({ host, port, startTls, timeoutMs }: EmailSettings, more: object) {
  // A port that wants TLS from the first byte sends no greeting: that is said before the end.
  const waits = { connectionTimeout: timeoutMs / 2, greetingTimeout: timeoutMs / 2, dnsTimeout: timeoutMs / 2 };
  const safe = { disableFileAccess: true, disableUrlAccess: true, maxResponseSize: replyBytesMax };
  const secure = { secure: !startTls, requireTLS: startTls };
  return createTransport({ host, port, ...secure, ...waits, socketTimeout: timeoutMs, ...safe, ...more });
}

/** The same notice gives the same Message-ID: readers can tell one that came twice. */
function toMail(notice: Notice, { from, to }: EmailSettings) {
  return {
    from,
    to: [...to],
    subject: toPlainText(notice.title, subjectCharactersMax),
    text: mailText(notice),
    date: new Date(notice.at),
    messageId: `<${hashText(notice.id, 32)}@${from.slice(from.lastIndexOf("@") + 1)}>`,
    headers: { "Auto-Submitted": "auto-generated" },
  };
}

/** A 5xx to sender, recipients or text is final. Every other failure would hit all notices. */
function toReceipt(error: NodemailerError, { startTls, port, timeoutMs }: EmailSettings): Receipt {
  const { code = "unknown", originalCode, responseCode: status, response, permanent } = error;
  if (code === "ETLS" && originalCode === undefined)
    return { type: "later", reason: `no TLS at port ${port}: ${plain(error.message)}` };
  if (status !== undefined) {
    const isFinal = permanent === true && (code === "EENVELOPE" || code === "EMESSAGE");
    const reason =
      code === "EAUTH" ? `the sign-in was refused with status ${status}` : `answered with status ${status}`;
    return { type: isFinal ? "refused" : "later", status, reason, said: plain(response) };
  }
  const cause = originalCode ?? code;
  // A slow server, or one that waits for TLS from the first byte: the time-out does not say which.
  if (error.timeoutType === "GREETING_TIMEOUT") {
    const tls = `set email.startTls to false for port ${port} only if that wants TLS from the first byte`;
    const slow = "a slow server needs a longer email.timeout, half of which it has to greet";
    return { type: "later", reason: `no greeting within ${timeoutMs / 2_000} s: ${slow}${startTls ? `; ${tls}` : ""}` };
  }
  const isMixedUp = /WRONG_VERSION|PACKET_LENGTH/.test(cause);
  const hint = isMixedUp ? `set email.startTls to ${!startTls} for port ${port}` : tlsHint(cause);
  const what =
    code === "EABORT" || code === "ETIMEDOUT" ? `no answer within ${timeoutMs / 1_000} s` : `no answer (${cause})`;
  return { type: "later", reason: hint === undefined ? what : `${what}: ${hint}` };
}

function plain(text: string | undefined): string {
  return toPlainText(text ?? "", saidCharactersMax).trim();
}
