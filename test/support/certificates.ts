// Certificates for tests: an authority, and what it signs. Made anew for each test file; nothing is
// kept on disk here.
import { generate } from "selfsigned";

/** A certificate and its key, in PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority of its own. */
export async function createAuthority(name: string): Promise<TestCertificate> {
  const made = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { cert: made.cert, key: made.private };
}

/**
 * What an authority signs: for these host names beside 127.0.0.1 (unless `noAddress`), good until
 * `until`.
 */
export async function signedBy(
  authority: TestCertificate,
  options: {
    readonly name?: string;
    readonly noAddress?: boolean;
    readonly from?: Date;
    readonly until?: Date;
    readonly passphrase?: string;
  } = {},
): Promise<TestCertificate> {
  const { name = "localhost", noAddress = false, from, until, passphrase } = options;
  const made = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    ca: authority,
    ...(from === undefined ? {} : { notBeforeDate: from }),
    ...(until === undefined ? {} : { notAfterDate: until }),
    ...(passphrase === undefined ? {} : { passphrase }),
    extensions: [
      { name: "basicConstraints", cA: false },
      {
        name: "subjectAltName",
        altNames: [{ type: 2, value: name }, ...(noAddress ? [] : [{ type: 7 as const, ip: "127.0.0.1" }])],
      },
    ],
  });
  return { cert: made.cert, key: made.private };
}
