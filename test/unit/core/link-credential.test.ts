import { describe, expect, it } from "vitest";
import { credentialIn } from "../../../src/core/link-credential.ts";
import { noteSecret } from "../../../src/core/secrets.ts";

const path = "/odata/approvals";
const page = `https://a.example${path}`;
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = `${base64({ alg: "HS256" })}.${base64({ sub: "x" })}.c2ln`;

describe("a link", () => {
  it.each([
    [`${page}?$skip=100&sig=abc`, "sig"],
    [`${page}?SIG=abc`, "SIG"],
    [`${page}?access_token=abc`, "access_token"],
    [`${page}?nextAccessToken=abc`, "nextAccessToken"],
    [`${page}?$skip=1&X-Amz-Signature=abc&X-Amz-Security-Token=x`, "X-Amz-Signature"],
    [`${page}?$skip=100&code=abc`, "code"],
    [`${page}?$skip=100&key=abc`, "key"],
    [`${page}?$skiptoken=Id-100&token=abc`, "token"],
    [`${page}?$skip=100&ticket=abc`, "ticket"],
    [`${page}?api-key=abc`, "api-key"],
    [`${page}?subscription-key=abc`, "subscription-key"],
    [`${page}?Authorization=Bearer%20abc`, "Authorization"],
    [`${page}?client_secret=abc`, "client_secret"],
    [`${page}?tempauth=abc`, "tempauth"],
    [`${page}?$skiptoken=${jwt}`, "JWT"],
    [`${page}?$skiptoken=1%2C${jwt}`, "JWT"],
    [`${page}?$skiptoken=${base64({ alg: "none" })}.${base64({})}.`, "JWT"],
    [`https://a.example/odata/$next/${jwt}`, "JWT"],
    ["https://a.example/odata/$next/T1?key=abc", "key"],
    ["https://u:p@a.example/odata/approvals?$skip=1", "user name"],
    ["approvals?password=abc", "password"],
    ["ftp://a.example/x", "scheme"],
    ["http://[", "scheme"],
  ])("that opens something by itself is known: %s", (link, found) => {
    expect(credentialIn(link, path)).toBe(found);
  });

  it.each([
    page,
    `${page}?$skip=100`,
    `${page}?$skiptoken=Id-4711`,
    `${page}?%24skiptoken=AbCd%3D%3D&repository=HR&$select=name,syncJobId`,
    `${page}?continuationToken=x&pageToken=y&nextPageToken=z&$deltatoken=d&syncToken=s`,
    "approvals?$skip=100",
    `${page}?$filter=name%20eq%20%27key%27&$orderby=approvalId`,
    `${page}?$skiptoken=${base64({ offset: 100, rows: 100 })}`,
    `${page}?$skiptoken=${base64({ alg: "HS256" })}`,
    `${page}?$skiptoken=${base64({ r: [{ id: 1 }] })}.${base64({ n: 2 })}.x`,
    `${page}?$skiptoken=6f9619ff-8b86-d011-b42d-00c04fc964ff`,
    `${page}?repository=HR&key=6f9619ff-8b86-d011-b42d-00c04fc964ff`,
    `${page}?key=4711&$select=name`,
    `${page}?key=4711&limit=100`,
    `${page}?code=AT-0815`,
    `${page}?token=opaque`,
    `${page}?after=4711`,
    `${page}?marker=abc&limit=100`,
    `${page}?NextPartitionKey=a&NextRowKey=b`,
    `${page}?lastAuthor=Ann&page=3`,
    `https://a.example/odata/authactivities?authAccountActivityEntityId=100`.replace("authactivities", "approvals"),
    "https://a.example/odata/$next/6f9619ff-8b86-d011-b42d-00c04fc964ff",
    `https://a.example/odata/$next/${base64({ offset: 100 })}`,
  ])("that says where to go on is none: %s", (link) => {
    expect(credentialIn(link, path)).toBeUndefined();
  });

  it("is told from the list's own pages only where the list's path is known", () => {
    expect(credentialIn(`${page}?key=4711`, undefined)).toBe("key");
    expect(credentialIn(`${page}?key=4711`, "/odata/trigger")).toBe("key");
  });

  it("with a secret of this process in it is known, whatever its parameter is called", () => {
    noteSecret("canary-link-secret");
    expect(credentialIn("https://a.example/odata/$next/canary-link-secret", path)).toBe("secret");
    expect(credentialIn(`${page}?$skiptoken=canary-link-secret`, path)).toBe("secret");
  });
});
