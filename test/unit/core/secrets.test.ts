import { describe, expect, it } from "vitest";
import {
  noteSecret,
  noteUrlPassword,
  withoutCutSecrets,
  withoutKnownSecrets,
  withoutSecretShapes,
  withoutSecrets,
} from "../../../src/core/secrets.ts";

describe("a noted secret", () => {
  it("is taken out wherever it stands, also percent-encoded", () => {
    noteSecret("p@ss word/7");
    expect(withoutKnownSecrets("a p@ss word/7 b p%40ss%20word%2F7 c")).toBe("a […] b […] c");
  });

  it("is left alone when it is as short as a word", () => {
    noteSecret("demo");
    noteSecret("");
    expect(withoutSecrets("a demo of it")).toBe("a demo of it");
  });

  it("in a URL's password is known as it stands there and decoded", () => {
    noteUrlPassword("redis://user:red%40is-pass@localhost:6379");
    expect(withoutKnownSecrets("red%40is-pass and red@is-pass")).toBe("[…] and […]");
    noteUrlPassword("not a URL");
    noteUrlPassword("redis://:100%pure-pass@localhost");
    expect(withoutKnownSecrets("100%pure-pass")).toBe("[…]");
  });

  it("is forgotten only when hundreds of newer ones came", () => {
    noteSecret("the-oldest-one");
    for (let count = 0; count < 400; count += 1) noteSecret(`newer-secret-${count}`);
    expect(withoutKnownSecrets("the-oldest-one")).toBe("[…]");
    noteSecret("the-oldest-one");
    for (let count = 0; count < 400; count += 1) noteSecret(`newest-secret-${count}`);
    expect(withoutKnownSecrets("the-oldest-one newer-secret-1 newest-secret-399")).toBe("[…] newer-secret-1 […]");
  });

  it("that is read once and stays in use is not forgotten over those that come and go", () => {
    noteSecret("read-once-at-the-start", "lasting");
    for (let count = 0; count < 600; count += 1) noteSecret(`token-of-hour-${count}`);
    expect(withoutKnownSecrets("read-once-at-the-start token-of-hour-1 token-of-hour-599")).toBe(
      "[…] token-of-hour-1 […]",
    );
  });

  it("is taken out of JSON too, where it is escaped", () => {
    noteSecret('quo"ted\\secret');
    expect(withoutKnownSecrets(JSON.stringify({ text: 'a quo"ted\\secret b' }))).toBe('{"text":"a […] b"}');
  });
});

describe("what others print", () => {
  it("loses secrets that are cut off somewhere, too, and nothing else", () => {
    const long = `redis-token-${"0123456789".repeat(40)}`;
    noteSecret(long);
    const cut = `auth([ '${long.slice(0, 150)} ... <REDACTED full-length="412">' ]) ${long.slice(0, 16)}, redis-token-`;
    expect(withoutCutSecrets(cut)).toBe("auth([ '[…] ... <REDACTED full-length=\"412\">' ]) […], redis-token-");
    expect(withoutCutSecrets(`a ${long} b Bearer abcdefgh12345678.xyz`)).toBe("a […] b Bearer […]");
  });
});

describe("what looks like a secret", () => {
  it.each([
    ["Authorization: Bearer abcdefgh12345678.xyz", "Authorization: Bearer […]"],
    ["basic dXNlcjpwYXNzd29yZA==", "basic […]"],
    ["BEARER abcdefgh12345678.xyz", "BEARER […]"],
    ["WSS://user:pass@host", "WSS://host"],
    ["key whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, whsec_ and base64", "key […], whsec_ and base64"],
    ["see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln here", "see […] here"],
    ["redis://:pass@host:6379 refused", "redis://host:6379 refused"],
    ["GET https://u:p@a.example/x?sig=1&b=2 failed", "GET https://a.example/x?[…] failed"],
    ["key -----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----.", "key […]."],
    ["key -----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGH", "key […]"],
  ])("is taken out of %j", (text, expected) => {
    expect(withoutSecretShapes(text)).toBe(expected);
  });

  it.each([
    "put a bearer token there",
    "basic authentication is not possible",
    "contracts@HR: 5 of 7",
    "https://a.example/path",
    "a question? Yes",
  ])("%j is not", (text) => {
    expect(withoutSecretShapes(text)).toBe(text);
  });
});
