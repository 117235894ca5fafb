import { describe, expect, it } from "vitest";
import { hasCredential } from "../../../src/core/link-credential.ts";

const page = "https://a.example/odata/approvals";

describe("a link", () => {
  it.each([
    `${page}?$skip=100&sig=abc`,
    `${page}?SIG=abc`,
    `${page}?access_token=abc`,
    `${page}?$skip=1&X-Amz-Signature=abc&X-Amz-Security-Token=x`,
    `${page}?code=abc`,
    `${page}?api-key=abc`,
    `${page}?Authorization=Bearer%20abc`,
    `${page}?client_secret=abc`,
    `${page}?$skiptoken=eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln`,
    "https://u:p@a.example/odata/approvals?$skip=1",
    "approvals?password=abc",
    "ftp://a.example/x",
    "http://[",
  ])("that opens something by itself is known: %s", (link) => {
    expect(hasCredential(link)).toBe(true);
  });

  it.each([
    page,
    `${page}?$skip=100`,
    `${page}?$skiptoken=Id-4711`,
    `${page}?%24skiptoken=AbCd%3D%3D&repository=HR&$select=name,syncJobId`,
    `${page}?continuationToken=x&pageToken=y&nextPageToken=z&$deltatoken=d&syncToken=s`,
    "approvals?$skip=100",
    `${page}?$filter=name%20eq%20%27key%27&$orderby=approvalId`,
  ])("that says where to go on is none: %s", (link) => {
    expect(hasCredential(link)).toBe(false);
  });
});
