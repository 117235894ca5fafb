// TLS: the certificates of one service, from files, and what failures of connections mean. Files
// are read again after 30 s or a failed connection, so that rotated ones apply. The check of the
// service's certificate cannot be switched off.
//
//   (nothing) ──read, good──▶ material ──30 s or expire()──▶ read: same → kept; good → new material; bad → kept, one warning a minute
//        └──read, bad──▶ TlsFilesError at every exchange, until the files are good
import { X509Certificate } from "node:crypto";
import { createSecureContext, getCACertificates } from "node:tls";
import { shared } from "../core/batcher.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { errorCode } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog, silentLog } from "../core/event-log.ts";
import { defined } from "../core/json.ts";
import { noteSecret } from "../core/secrets.ts";
import { readBounded } from "./token.ts";

/** Where the files are. `certFile` and `keyFile` go together. */
export interface TlsPaths {
  /** Authorities of the service's certificate, in PEM, instead of the public ones. */
  readonly caFile?: string | undefined;
  /** The client's certificate with its intermediates, in PEM. */
  readonly certFile?: string | undefined;
  /** The client's private key, in PEM. */
  readonly keyFile?: string | undefined;
  /** The passphrase of the key. */
  readonly keyPassphraseFile?: string | undefined;
  /** The host name in the service's certificate, where it is not the URL's. */
  readonly serverName?: string | undefined;
}

/** Options for an agent of `node:https`. The same object while the files stay the same. */
export interface TlsMaterial {
  readonly ca?: string[];
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  readonly servername?: string;
}

/** The files cannot be used. The message names the file and never its content. */
export class TlsFilesError extends Error {
  override readonly name = "TlsFilesError";
}

/** Further options of TlsFiles. */
export interface TlsFilesOptions {
  readonly clock?: Clock | undefined;
  /** Gets `tls.unusable`; silent unless set. */
  readonly log?: EventLog | undefined;
  /** Trust the public authorities, too: a token endpoint may have either kind of certificate. */
  readonly trustPublic?: boolean | undefined;
}

const fileBytesMax = 1_048_576;
const ageMsMax = 30_000;

/** The certificates of one service. */
export class TlsFiles {
  readonly #paths: TlsPaths;
  readonly #options: TlsFilesOptions;
  readonly #clock: Clock;
  readonly #log: EventLog;
  #last: { readonly material: TlsMaterial; readonly key: string; readonly readAtMs: number } | undefined;
  readonly #readOnce = shared(() => this.#read());

  constructor(paths: TlsPaths, options: TlsFilesOptions = {}) {
    this.#paths = paths;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = createRateLimitedLog(options.log ?? silentLog, this.#clock, "");
  }

  /** What to connect with now. @throws TlsFilesError when the files were never good. */
  async current(): Promise<TlsMaterial> {
    if (this.#last !== undefined && this.#clock.monotonicMs() - this.#last.readAtMs < ageMsMax)
      return this.#last.material;
    return this.#readOnce();
  }

  /** Reads the files again before the next connection: this one failed, perhaps over them. */
  expire(): void {
    if (this.#last !== undefined) this.#last = { ...this.#last, readAtMs: Number.NEGATIVE_INFINITY };
  }

  async #read(): Promise<TlsMaterial> {
    const readAtMs = this.#clock.monotonicMs();
    try {
      const material = await readMaterial(this.#paths, this.#options.trustPublic === true);
      const key = JSON.stringify(material);
      if (this.#last?.key !== key) checkMaterial(material, this.#paths);
      this.#last = { material: this.#last?.key === key ? this.#last.material : material, key, readAtMs };
    } catch (error) {
      if (!(error instanceof TlsFilesError)) throw error;
      this.#log.warn("tls.unusable", { message: error.message, inForce: this.#last !== undefined });
      // A rotation file by file has a moment when key and certificate do not match.
      if (this.#last === undefined) throw error;
      this.#last = { ...this.#last, readAtMs };
    }
    return this.#last.material;
  }
}

async function readMaterial(paths: TlsPaths, trustPublic: boolean): Promise<TlsMaterial> {
  const ca = await readPem(paths.caFile);
  const cert = await readPem(paths.certFile);
  const key = await readPem(paths.keyFile);
  const passphrase = (await readPem(paths.keyPassphraseFile))?.replace(/\r?\n$/, "");
  if (passphrase !== undefined) noteSecret(passphrase);
  const cas = ca === undefined ? undefined : trustPublic ? [...getCACertificates("default"), ca] : [ca];
  return defined({ ca: cas, cert, key, passphrase, servername: paths.serverName });
}

async function readPem(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const read = await readBounded(path, fileBytesMax);
  if ("text" in read) return read.text;
  throw new TlsFilesError(`TLS file ${path} cannot be read (${read.code}): check the path and its rights`);
}

/** Tries the files, so that a mistake is named. @throws TlsFilesError */
function checkMaterial({ ca, cert, key, passphrase }: TlsMaterial, paths: TlsPaths): void {
  for (const [pem, path] of [
    [ca?.at(-1), paths.caFile],
    [cert, paths.certFile],
  ] as const) {
    if (pem !== undefined && !isCertificate(pem)) {
      throw new TlsFilesError(`TLS file ${path} holds no certificate: it must be in PEM form`);
    }
  }
  try {
    createSecureContext({ cert, key, passphrase });
  } catch (error) {
    throw new TlsFilesError(
      `TLS file ${paths.keyFile} cannot be used with ${paths.certFile} (${errorCode(error, "unusable")}): check that the key is the certificate's, and its passphrase`,
    );
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}

const untrusted =
  "its certificate is signed by an authority that is not trusted: name that authority's certificate in tls.caFile";
const refused =
  "it refused the client certificate, or wants one: check tls.certFile and tls.keyFile, and whether they have expired";

const hints: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "its certificate has expired: renew it there",
  CERT_NOT_YET_VALID: "its certificate is not valid yet: check the clocks",
  CERT_REVOKED: "its certificate was revoked: renew it there",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host: check the URL, or set tls.serverName",
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  CERT_UNTRUSTED: untrusted,
  CERT_SIGNATURE_FAILURE: untrusted,
  INVALID_CA: untrusted,
  EPROTO: "it does not speak TLS as wanted: check that the URL's port is one for https",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS: check that the URL's port is one for https",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS: check that the URL's port is one for https",
};

/** Alerts about the client's certificate. In TLS 1.3 they may come after the request left. */
const clientRefusal =
  /^ERR_SSL_(TLSV1[23]?|SSLV3|SSL\/TLS)_ALERT_(CERTIFICATE_REQUIRED|UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_EXPIRED|CERTIFICATE_REVOKED|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|HANDSHAKE_FAILURE|ACCESS_DENIED|DECRYPT_ERROR)$/;

/** What a TLS failure with this code of Node or OpenSSL means and what to do. */
export function tlsHint(code: string): string | undefined {
  if (clientRefusal.test(code)) return refused;
  return Object.hasOwn(hints, code) ? hints[code] : undefined;
}

/** Whether the server refused our certificate in the handshake, so that it took no request. */
export function isClientRefusal(code: string): boolean {
  return clientRefusal.test(code);
}
