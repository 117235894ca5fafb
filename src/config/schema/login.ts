// How Syncline logs in at a service: the `token` and `tls` of a service. Part of service.ts.
// Source: service-interface §5; how tokens are obtained is not shown there.
import { z } from "zod";
import { textSchema } from "./primitives.ts";

const oauth2Schema = z
  .strictObject({
    tokenUrl: textSchema.meta({
      description:
        "The token endpoint: https, or http to this machine. Its certificate may come from a public authority or from those in tls.caFile.",
      examples: ["https://login.example.com/oauth2/token"],
    }),
    clientId: textSchema.meta({ description: "The client id.", examples: ["syncline"] }),
    clientSecretFile: textSchema.meta({
      description:
        "The file with the client secret, relative to the policy file. It is read for each token request, so a rotated secret applies at once.",
      examples: ["/run/secrets/syncline/client"],
    }),
    scope: textSchema
      .meta({ description: "The scope to ask for. Default: none.", examples: ["sync.run"] })
      .exactOptional(),
    auth: z
      .enum(["basic", "post"])
      .meta({
        description: "How id and secret are sent: `basic` in the header, `post` in the body.",
        default: "basic",
        examples: ["post"],
      })
      .exactOptional(),
    allowHttp: z
      .boolean()
      .meta({
        description: "Allows plain http to a host other than this machine. The secret can then be read on the way.",
        default: false,
        examples: [false],
      })
      .exactOptional(),
  })
  .meta({ description: "A token by OAuth 2 client credentials." });

/** Where the bearer token comes from. */
export const tokenSchema = z
  .strictObject(
    {
      file: textSchema
        .meta({
          description:
            "The file with the token, relative to the policy file. It is read again within 30 s of a change.",
          examples: ["/run/secrets/syncline/token"],
        })
        .exactOptional(),
      env: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "write the name of the variable alone, such as SYNC_TOKEN")
        .meta({ description: "The name of the environment variable that holds the token.", examples: ["SYNC_TOKEN"] })
        .exactOptional(),
      oauth2: oauth2Schema.exactOptional(),
    },
    {
      error: (issue) =>
        typeof issue.input === "string"
          ? "a token never stands in a policy file: write { file: PATH } or { env: NAME }"
          : undefined,
    },
  )
  .meta({
    description:
      "Where the bearer token comes from: exactly one of file, env, oauth2. Never put the token itself here.",
    examples: [{ file: "/run/secrets/syncline/token" }],
    minProperties: 1,
    maxProperties: 1,
  });

/** Certificates that are not Node's own. */
export const tlsSchema = z
  .strictObject({
    caFile: textSchema
      .meta({
        description:
          "The authorities that may have signed the service's certificate, in PEM; relative to the policy file. They replace the public ones.",
        examples: ["/run/secrets/syncline/ca.crt"],
      })
      .exactOptional(),
    certFile: textSchema
      .meta({
        description: "Syncline's client certificate, in PEM; requires keyFile.",
        examples: ["/run/secrets/syncline/tls.crt"],
      })
      .exactOptional(),
    keyFile: textSchema
      .meta({ description: "The private key of certFile, in PEM.", examples: ["/run/secrets/syncline/tls.key"] })
      .exactOptional(),
    keyPassphraseFile: textSchema
      .meta({
        description: "The file with the passphrase of keyFile.",
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
        description: "The host name in the service's certificate. Default: the one of baseUrl.",
        examples: ["sync.example.com"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "A private authority and a client certificate. Files are read again within 30 s of a change. The check of certificates cannot be switched off.",
    examples: [{ caFile: "/run/secrets/syncline/ca.crt" }],
    minProperties: 1,
  });
