// The types of zip-entry.mjs, for its test.

/** The bytes of one entry. */
export function readZipEntry(archive: Buffer, name: string, bytesMax: number): Buffer;
