// From a seed to a chaos of answers: what a server that is no good service answers to each start
// and to some reads, byte by byte and move by move. Pure. An answer that a client may take for a
// success belongs to a start that is carried out, a documented refusal to one that is not: what any
// other answer stands for is drawn.
import { createRandom, type SeededRandom } from "./seeded-random.ts";

/**
 * One thing that the server does with a connection. `drip` goes on until the connection is over;
 * `half-close` sends FIN and goes on reading; `beneath` writes to the connection under TLS, without
 * TLS the same bytes as they are; `hold` leaves it open.
 */
type Move =
  | { readonly move: "write" | "beneath"; readonly bytes: string }
  | { readonly move: "wait"; readonly forMs: number }
  | { readonly move: "drip"; readonly bytes: string; readonly everyMs: number }
  | { readonly move: "half-close" | "reset" | "close" | "hold" };

/**
 * One odd answer. `bytes` are latin-1. `isDone`: whether a start that is answered so is carried
 * out.
 */
export interface OddAnswer {
  readonly kind: string;
  readonly moves: readonly Move[];
  readonly isDone: boolean;
}

/** A chaos of answers. `reads`: for each read in turn, an odd answer or the truth. */
export interface AnswerChaos {
  readonly isTls: boolean;
  readonly starts: readonly OddAnswer[];
  readonly reads: readonly (OddAnswer | undefined)[];
  /** What the commands meet: nothing but odd answers, in turn. */
  readonly commandReads: readonly OddAnswer[];
}

/** As many starts of a seed are answered oddly. */
export const oddStarts = 100;
const readsCount = 1_000;
const oddReadShare = 0.5;
const okBody = '{"value":[]}';

/** The chaos of this seed. */
export function planAnswerChaos(seed: number): AnswerChaos {
  const random = createRandom(seed);
  const isTls = random.chance(0.25);
  const odd = () => oddAnswer(random, isTls);
  return {
    isTls,
    starts: Array.from({ length: oddStarts }, odd),
    reads: Array.from({ length: readsCount }, () => (random.chance(oddReadShare) ? odd() : undefined)),
    commandReads: Array.from({ length: 20 }, odd),
  };
}

const statuses = [
  ...[0, 99, 200, 201, 202, 204, 205, 206, 226, 299, 300, 301, 302, 303, 304, 305, 307, 308, 399],
  ...[400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423],
  ...[424, 425, 426, 428, 431, 451, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511, 520, 599],
  ...[600, 700, 999],
] as const;

type Make = (random: SeededRandom) => readonly Move[];

const kinds = {
  status: (random) => [write(whole(random.pick(statuses), random.pick(["", "x-a: b\r\n", retryAfter(random)])))],
  line: (random) => [write(`${random.pick(lines)}\r\n${plainHeaders}\r\n${okBody}`), ...ending(random)],
  informational: (random) => [
    write(Array.from({ length: random.integer(1, 5) }, () => information(random)).join("")),
    ...random.pick([[write(whole(200))], [write(whole(409))], ending(random), [drip(information(random), 20)]]),
  ],
  upgrade: (random) => [write(upgrade(random)), ...afterUpgrade(random)],
  length: (random) => [write(head(200, random.pick(lengths)) + okBody), ...ending(random)],
  chunks: (random) => [write(head(200, chunked) + random.pick(chunks)), ...ending(random)],
  trailers: (random) => [
    write(`${head(200, chunked)}c\r\n${okBody}\r\n0\r\n`),
    ...random.pick([
      [write("x: y\r\n\r\n")],
      [drip("x: y\r\n", random.integer(1, 50))],
      [write(`x: ${"y".repeat(random.integer(10, 90_000))}\r\n\r\n`)],
      [write("no colon\r\n\r\n")],
      ending(random),
    ]),
  ],
  cut: (random) => {
    const text = random.pick([
      whole(200),
      whole(500),
      whole(409),
      `${information(random)}${whole(200)}`,
      upgrade(random),
    ]);
    return [write(text.slice(0, random.integer(0, text.length))), ...ending(random)];
  },
  drip: (random) => {
    const text = whole(random.pick([200, 500]));
    const everyMs = random.integer(1, 40);
    return [...text].flatMap((byte) => [write(byte), { move: "wait", forMs: everyMs } as const]);
  },
  encoding: (random) => [
    write(head(200, `content-encoding: ${random.pick(encodings)}\r\ncontent-length: 4\r\n`)),
    write(random.pick(["nope", "\x1f\x8b\x08\x00", "\x00\x00\x00\x00", "(\xb5/\xfd"])),
    ...ending(random),
  ],
  headers: (random) => [write(head(200, random.pick(headers)(random)) + okBody), ...ending(random)],
  pipelined: (random) => [
    write(whole(200)),
    ...random.pick([[], [{ move: "wait", forMs: random.integer(1, 30) } as const]]),
    write(random.pick([whole(200), upgrade(random), "\x00\x01\x02", "GET / HTTP/1.1\r\n\r\n", information(random)])),
    ...ending(random),
  ],
  beneath: (random) => [
    ...random.pick([[], [write(head(200, "content-length: 50\r\n"))], [write(whole(500))]]),
    { move: "beneath", bytes: random.pick(records) },
    ...ending(random),
  ],
  silence: (random) => ending(random),
} satisfies Record<string, Make>;

function oddAnswer(random: SeededRandom, isTls: boolean): OddAnswer {
  const names = Object.keys(kinds) as (keyof typeof kinds)[];
  const kind = isTls && random.chance(0.2) ? "beneath" : random.pick(names);
  const moves: readonly Move[] = kinds[kind](random);
  const said = moves.map((move) => ("bytes" in move ? move.bytes : "")).join("");
  const isSuccess = /(HTTP\/\d[.\d]*|ICY|RTSP\/\S+)\s+2\d\d/i.test(said);
  const isRefusal = /HTTP\/\d[.\d]*\s+(400|401|403|429|503)/i.test(said);
  return { kind, moves, isDone: isSuccess || (!isRefusal && random.chance(0.5)) };
}

const plainHeaders = `content-type: application/json\r\ncontent-length: ${okBody.length}\r\n`;
const chunked = "transfer-encoding: chunked\r\n";

function head(status: number, headers: string): string {
  return `HTTP/1.1 ${String(status).padStart(3, "0")} Odd\r\ncontent-type: application/json\r\n${headers}\r\n`;
}

/** A whole answer; a seed's own Retry-After is a second at most, so that a seed ends. */
function whole(status: number, headers = ""): string {
  return `${head(status, `content-length: ${okBody.length}\r\n${headers}`)}${okBody}`;
}

function retryAfter(random: SeededRandom): string {
  return `retry-after: ${random.pick(["0", "1", "-1", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"])}\r\n`;
}

function information(random: SeededRandom): string {
  const status = random.pick([100, 102, 103, 104, 110, 150, 199]);
  return `HTTP/1.1 ${status} Odd\r\n${random.pick(["", "link: </a>; rel=preload\r\n"])}\r\n`;
}

function upgrade(random: SeededRandom): string {
  const named = random.pick(["websocket", "h2c", "TLS/1.0", "foo/2", ""]);
  return `HTTP/1.1 101 Switching Protocols\r\n${random.pick(["Connection: Upgrade\r\n", ""])}Upgrade: ${named}\r\n\r\n`;
}

function afterUpgrade(random: SeededRandom): readonly Move[] {
  const wait = { move: "wait", forMs: random.integer(1, 100) } as const;
  return random.pick([
    ending(random),
    [wait, ...ending(random)],
    [write("\x81\x05hello"), wait, ...ending(random)],
    [write(whole(200)), ...ending(random)],
    [drip("\x81\x05hello", 20)],
  ]);
}

function ending(random: SeededRandom): readonly Move[] {
  return [{ move: random.weighted({ "half-close": 3, reset: 4, close: 3, hold: 1 }) }];
}

function write(bytes: string): Move {
  return { move: "write", bytes };
}

function drip(bytes: string, everyMs: number): Move {
  return { move: "drip", bytes, everyMs };
}

const lines = [
  ...["HTTP/1.0 200 OK", "HTTP/1.1 200", "HTTP/2.0 200 OK", "HTTP/0.9 200 OK", "HTTP/1.1  200  OK", "http/1.1 200 OK"],
  ...["ICY 200 OK", "HTTP/1.1 2xx OK", "HTTP/1.1 20", "HTTP/1.1 2000 OK", "HTTP/1.1 -200 OK", "HTTP/1.1\t200 OK"],
  ...["HTTP/9.9 409 Odd", "SSH-2.0-OpenSSH_9.6", "220 mail ESMTP", "RTSP/1.0 200 OK", "", "\x00", "{}", "<html>"],
  ...["HTTP/1.1 409 Conflict\x00", `HTTP/1.1 500 ${"x".repeat(20_000)}`, "HTTP/1.1 500 \xff\xfe"],
] as const;

const lengths = [
  ...["", "content-length: 0\r\n", "content-length: 5\r\n", "content-length: 500\r\n", "content-length: -1\r\n"],
  ...["content-length: 12\r\ncontent-length: 12\r\n", "content-length: 12\r\ncontent-length: 13\r\n"],
  ...["content-length: 0x0c\r\n", "content-length: +12\r\n", "content-length: 12, 12\r\n", "content-length: \r\n"],
  ...["content-length: 99999999999999999999999\r\n", `content-length: 12\r\n${chunked}`, "content-length: 1e1\r\n"],
] as const;

const chunks = [
  ...["", "c", "c\r\n", `c\r\n${okBody}`, `c\r\n${okBody}\r\n`, `c\r\n${okBody}\r\n0`, `c\r\n${okBody}\r\n0\r\n`],
  ...["zz\r\n", "-1\r\nx\r\n", "ffffffffffffffffff\r\nx", "7fffffff\r\nx", ";;;\r\n", `5\r\n${okBody}\r\n0\r\n\r\n`],
  ...[`c;${"e".repeat(20_000)}\r\n${okBody}\r\n0\r\n\r\n`, `0c\r\n${okBody}\n0\n\n`, "0\r\n\r\n0\r\n\r\n"],
] as const;

const encodings = ["gzip", "br", "deflate", "zstd", "gzip, gzip", "x-gzip", "compress", "identity", "odd", ""] as const;

const headers: readonly ((random: SeededRandom) => string)[] = [
  (random) => `x-long: ${"y".repeat(random.integer(8_000, 90_000))}\r\n`,
  (random) => Array.from({ length: random.integer(100, 4_000) }, (_, index) => `x-${index}: y\r\n`).join(""),
  () => "no colon\r\n",
  () => ": no name\r\n",
  () => "x y: z\r\n",
  () => "x: \x00\r\n",
  () => " folded: line\r\n",
  () => "x: y\n\n",
  () => "connection: close, upgrade\r\nupgrade: h2c\r\n",
  () => "connection: keep-alive\r\nkeep-alive: timeout=0, max=-1\r\n",
  () => "set-cookie: a=b\r\nset-cookie: c=d\r\nlocation: http://127.0.0.1:1/\r\n",
  () => "content-type: text/html\r\n",
];

/**
 * Records of TLS: alerts of every kind that matters, close_notify, a broken one, and what is none
 * at all.
 */
const records = [
  ...["\x15\x03\x03\x00\x02\x01\x00", "\x15\x03\x03\x00\x02\x02\x28", "\x15\x03\x03\x00\x02\x02\x50"],
  ...["\x15\x03\x03\x00\x02\x02\x74", "\x17\x03\x03\x00\x10aaaaaaaaaaaaaaaa", "\x16\x03\x03\x00\x04\x00\x00\x00\x00"],
  ...["\x17\x03\x03\xff\xff", "HTTP/1.1 409 Plain\r\n\r\n", "\x00"],
] as const;
