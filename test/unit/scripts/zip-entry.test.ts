import { crc32, deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readZipEntry } from "../../../scripts/helm/zip-entry.mjs";

/** A zip archive by hand, as the format says: local headers, directory, end. */
function zip(files: readonly { readonly name: string; readonly text: string; readonly stored?: boolean }[]): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  for (const { name, text, stored = false } of files) {
    const content = Buffer.from(text);
    const packed = stored ? content : deflateRawSync(content);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(stored ? 0 : 8, 10);
    entry.writeUInt32LE(crc32(content), 16);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(content.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(Buffer.concat(locals).length, 42);
    locals.push(local, Buffer.from(name), packed);
    entries.push(entry, Buffer.from(name));
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(Buffer.concat(locals).length, 16);
  return Buffer.concat([...locals, ...entries, end]);
}

const archive = zip([
  { name: "a/first", text: "one", stored: true },
  { name: "helm/helm", text: "two ".repeat(1000) },
]);

describe("readZipEntry", () => {
  it("gives stored and deflated files", () => {
    expect(readZipEntry(archive, "a/first", 100).toString()).toBe("one");
    expect(readZipEntry(archive, "helm/helm", 4000).toString()).toBe("two ".repeat(1000));
  });

  it("says what is wrong", () => {
    expect(() => readZipEntry(archive, "helm/kubectl", 100)).toThrow("the zip holds no helm/kubectl");
    expect(() => readZipEntry(archive, "helm/helm", 3999)).toThrow("helm/helm is larger than 3999 bytes");
    expect(() => readZipEntry(Buffer.from("no zip at all, but long enough for one"), "a", 9)).toThrow("this is no zip");
    const broken = Buffer.from(archive);
    broken.write("X", 37); // The first byte of the first file.
    expect(() => readZipEntry(broken, "a/first", 100)).toThrow("a/first is damaged");
  });
});
