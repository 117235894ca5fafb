// Takes one file out of a zip archive, since a bare machine may have no unzip. Called by helm.mjs
// only. Knows stored and deflated entries of archives below 4 GiB and checks length and CRC; never
// writes to disk.
import { crc32, inflateRawSync } from "node:zlib";

const endSignature = 0x06054b50;
const entrySignature = 0x02014b50;
const endBytes = 22;
const commentBytesMax = 65_535;

/**
 * The bytes of the entry with this name, at most `bytesMax` of them.
 * @throws Error when the archive is broken, or the entry is missing, larger than `bytesMax`, or not
 * as its directory says.
 */
export function readZipEntry(archive, name, bytesMax) {
  const { count, start } = findDirectory(archive);
  for (let at = start, seen = 0; seen < count; seen += 1) {
    if (at + 46 > archive.length || archive.readUInt32LE(at) !== entrySignature)
      throw new Error("the zip's directory is broken");
    const nameEnd = at + 46 + archive.readUInt16LE(at + 28);
    if (archive.toString("utf8", at + 46, nameEnd) === name) return unpack(archive, at, { name, bytesMax });
    at = nameEnd + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  throw new Error(`the zip holds no ${name}`);
}

function findDirectory(archive) {
  const lowest = Math.max(0, archive.length - endBytes - commentBytesMax);
  for (let at = archive.length - endBytes; at >= lowest; at -= 1) {
    if (archive.readUInt32LE(at) === endSignature)
      return { count: archive.readUInt16LE(at + 10), start: archive.readUInt32LE(at + 16) };
  }
  throw new Error("this is no zip");
}

function unpack(archive, at, { name, bytesMax }) {
  const method = archive.readUInt16LE(at + 10);
  const [crc, packedBytes, bytes] = [16, 20, 24].map((offset) => archive.readUInt32LE(at + offset));
  const header = archive.readUInt32LE(at + 42);
  if (bytes > bytesMax) throw new Error(`${name} is larger than ${bytesMax} bytes`);
  const data = header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28);
  const packed = archive.subarray(data, data + packedBytes);
  if (method !== 0 && method !== 8) throw new Error(`${name} is packed in a way (${method}) that is not known here`);
  const content = method === 0 ? packed : inflateRawSync(packed, { maxOutputLength: bytesMax });
  if (content.length !== bytes || crc32(content) !== crc) throw new Error(`${name} is damaged`);
  return content;
}
