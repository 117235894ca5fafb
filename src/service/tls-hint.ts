// Explains TLS failures by the code of Node or OpenSSL. Pure; called by transport.ts,
// call-failure.ts and oauth2-token.ts.

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

/**
 * Alerts about the client's certificate. In TLS 1.3 they may come after the request left; the
 * server that sends one has taken no request.
 */
const clientRefusal =
  /^ERR_SSL_(TLSV1[23]?|SSLV3|SSL\/TLS)_ALERT_(CERTIFICATE_REQUIRED|UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_EXPIRED|CERTIFICATE_REVOKED|CERTIFICATE_UNKNOWN|UNSUPPORTED_CERTIFICATE|HANDSHAKE_FAILURE|ACCESS_DENIED|DECRYPT_ERROR)$/;

/**
 * What a TLS failure with this code means and what to do, to follow "the service cannot be reached:
 * "; undefined for other codes.
 */
export function tlsHint(code: string): string | undefined {
  if (clientRefusal.test(code)) return refused;
  return Object.hasOwn(hints, code) ? hints[code] : undefined;
}

/** Whether the server refused our certificate in the handshake, so that it took no request. */
export function isClientRefusal(code: string): boolean {
  return clientRefusal.test(code);
}
