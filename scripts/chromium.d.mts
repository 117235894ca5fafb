// The types of chromium.mjs.

/** A Chromium: the program, and what its environment needs. */
export interface FoundChromium {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

export function findChromium(options?: {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cache?: string;
  readonly onProgress?: (line: string) => void;
}): Promise<FoundChromium>;
