// `services.NAME.tls`: certificates. Part of service.ts.
import { z } from "zod";
import { textSchema } from "./primitives.ts";

/** A private authority and a client certificate. */
export const tlsSchema = z
  .strictObject({
    caFile: textSchema
      .meta({
        description:
          "The authorities that may have signed the service's certificate, in PEM, in place of the public ones; relative to the policy file.",
        examples: ["/run/secrets/syncline/ca.crt"],
      })
      .exactOptional(),
    certFile: textSchema
      .meta({
        description: "The certificate that Syncline shows the service, in PEM; with keyFile.",
        examples: ["/run/secrets/syncline/tls.crt"],
      })
      .exactOptional(),
    keyFile: textSchema
      .meta({ description: "The private key of certFile, in PEM.", examples: ["/run/secrets/syncline/tls.key"] })
      .exactOptional(),
    keyPassphraseFile: textSchema
      .meta({
        description: "The file that holds the passphrase of keyFile.",
        examples: ["/run/secrets/syncline/passphrase"],
      })
      .exactOptional(),
    serverName: z
      .string()
      .regex(
        /^(?=.{1,253}$)(?!\d+(\.\d+){3}$)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/,
        "write a host name, such as sync.example.com",
      )
      .meta({
        description: "The host name that the service's certificate is for, where it is not that of baseUrl.",
        examples: ["sync.example.com"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "A private authority and a client certificate. Files are read again within 30 s of a change. Checking of certificates cannot be switched off.",
    examples: [{ caFile: "/run/secrets/syncline/ca.crt" }],
    minProperties: 1,
  });
