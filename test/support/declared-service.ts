// A service with a mind of its own, for tests of declared state: its own read-only fields (a 400
// that names the field or not), fields that it ignores, ETags that some entities demand, answers
// that get lost before or after the effect, and a book of every field that every PUT touched. A
// real HTTP server; knows nothing of Syncline, and nothing of the sandbox.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DeclaredKind } from "../../src/core/declared-object.ts";
import { isJsonObject } from "../../src/core/json.ts";

/** How one object behaves. */
export interface ObjectNature {
  /** What it is at first. */
  readonly fields: Readonly<Record<string, string | null>>;
  /**
   * Demands If-Match (428), refuses an old one (412), and shows its ETag: in the body, in the
   * header, or never.
   */
  readonly etag?: "body" | "header" | "hidden";
  /** Answers an update with 204, with an entity cut to its id, or with a 200 and nothing at all. */
  readonly answers?: "whole" | "cut" | "204" | "empty";
}

/** How a service behaves. All may be left out. */
export interface ServiceNature {
  /**
   * By `kind.field`: refused with a 400 that names the field as read-only, names nothing, or says
   * nothing at all.
   */
  readonly readOnly?: Readonly<Record<string, "named" | "unnamed" | "silent">>;
  /** By `kind.field`: answered with success and not changed. */
  readonly ignored?: readonly string[];
  /** Creates an object that an update finds missing (201), as OData allows; else 404. */
  readonly upserts?: boolean;
  /** What it makes of a value that it takes. */
  readonly rewrite?: (value: string) => string;
  /**
   * Called for each request: what happens to it. `lost-before`: the connection is cut and nothing
   * was done; `lost-after`: it was done.
   */
  readonly fate?: (method: string) => "answered" | "lost-before" | "lost-after" | "500-before" | "500-after" | "busy";
}

/** One PUT as it arrived. */
export interface ArrivedPut {
  readonly object: string;
  readonly fields: readonly string[];
  readonly status: number;
}

interface Stored {
  fields: Record<string, string | null>;
  version: number;
  readonly nature: ObjectNature;
}

const kindOfPath: Readonly<Record<string, DeclaredKind>> = {
  syncjobs: "syncJob",
  syncjobsdocmasks: "docMask",
  drivesynctargets: "driveTarget",
  sitesynctargets: "siteTarget",
};

/**
 * The service: set its natures anew for each round. Objects are named as tasks name them:
 * `syncJob-42`.
 */
export class DeclaredService {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #objects = new Map<string, Stored>();
  #nature: ServiceNature = {};
  readonly puts: ArrivedPut[] = [];

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Begins anew with these objects. */
  set(objects: Readonly<Record<string, ObjectNature>>, nature: ServiceNature = {}): void {
    this.#objects.clear();
    this.puts.length = 0;
    this.#nature = nature;
    for (const [name, own] of Object.entries(objects))
      this.#objects.set(name, { fields: { ...own.fields }, version: 1, nature: own });
  }

  /** Another nature over the same objects. */
  become(nature: ServiceNature): void {
    this.#nature = nature;
  }

  /** What an object's fields really are. */
  fieldsOf(name: string): Readonly<Record<string, string | null>> {
    return { ...this.#objects.get(name)?.fields };
  }

  /** Somebody changes a field by hand. */
  changeByHand(name: string, field: string, value: string): void {
    const stored = this.#objects.get(name);
    if (stored === undefined) throw new Error(`no ${name}`);
    stored.fields[field] = value;
    stored.version += 1;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const method = request.method ?? "";
    const fate = this.#nature.fate?.(method) ?? "answered";
    if (fate === "lost-before") return void response.socket?.resetAndDestroy();
    if (fate === "500-before") return void response.writeHead(500).end();
    if (fate === "busy") return void response.writeHead(503, { "retry-after": "1" }).end();
    const [, path = "", key = ""] = /^\/odata\/(\w+)(?:\((\d+)\))?/.exec(request.url ?? "") ?? [];
    const answer =
      method === "GET" && path === "syncjobsmasks"
        ? this.#masks()
        : this.#one(method, `${kindOfPath[path]}-${key}`, { request, text });
    if (fate === "lost-after") return void response.socket?.resetAndDestroy();
    if (fate === "500-after") return void response.writeHead(500).end();
    response.writeHead(answer.status, answer.headers).end(answer.body === undefined ? "" : JSON.stringify(answer.body));
  }

  #masks(): Answered {
    const value = [...this.#objects].flatMap(([name, stored]) =>
      name.startsWith("docMask-") ? [this.#shown(name, stored)] : [],
    );
    return { status: 200, body: { value } };
  }

  #one(method: string, name: string, { request, text }: { request: IncomingMessage; text: string }): Answered {
    const stored = this.#objects.get(name);
    if (method === "GET") {
      if (stored === undefined || !name.startsWith("syncJob-")) return { status: 404 };
      const headers = stored.nature.etag === "header" ? { etag: etagOf(stored) } : {};
      return { status: 200, headers, body: this.#shown(name, stored) };
    }
    const parsed: unknown = JSON.parse(text);
    const body = isJsonObject(parsed) ? parsed : {};
    const answer =
      stored === undefined
        ? this.#createOrMiss(name, body)
        : this.#update(name, stored, { body, ifMatch: request.headers["if-match"] });
    this.puts.push({ object: name, fields: Object.keys(body), status: answer.status });
    return answer;
  }

  #createOrMiss(name: string, body: Readonly<Record<string, unknown>>): Answered {
    if (this.#nature.upserts !== true) return { status: 404 };
    const fields = Object.fromEntries(Object.entries(body).map(([field, value]) => [field, String(value)]));
    this.#objects.set(name, { fields, version: 1, nature: { fields } });
    return { status: 201, body: fields };
  }

  #update(
    name: string,
    stored: Stored,
    { body, ifMatch }: { body: Readonly<Record<string, unknown>>; ifMatch: string | undefined },
  ): Answered {
    if (stored.nature.etag !== undefined) {
      if (ifMatch === undefined) return { status: 428 };
      if (ifMatch !== "*" && ifMatch !== etagOf(stored)) return { status: 412 };
    }
    const kind = name.split("-")[0] ?? "";
    for (const field of Object.keys(body)) {
      const how = this.#nature.readOnly?.[`${kind}.${field}`] ?? (field in stored.fields ? undefined : "named");
      if (how === "named")
        return { status: 400, body: { error: { code: "", message: `The property '${field}' is read-only.` } } };
      if (how === "unnamed")
        return { status: 400, body: { error: { code: "400", message: "The request is invalid." } } };
      if (how === "silent") return { status: 400 };
    }
    for (const [field, value] of Object.entries(body))
      if (!this.#nature.ignored?.includes(`${kind}.${field}`))
        stored.fields[field] = this.#nature.rewrite?.(String(value)) ?? String(value);
    stored.version += 1;
    const { answers = "whole" } = stored.nature;
    const headers = stored.nature.etag === "header" ? { etag: etagOf(stored) } : {};
    if (answers === "204") return { status: 204, headers };
    if (answers === "empty") return { status: 200, headers };
    return { status: 200, headers, body: answers === "cut" ? { id: 1 } : this.#shown(name, stored) };
  }

  #shown(name: string, stored: Stored): object {
    const [kind, id] = name.split("-");
    const ids = {
      syncJob: { syncJobId: Number(id) },
      docMask: { maskId: Number(id), type: "DocMask", syncJobId: 42, ecmMaskId: "x" },
    };
    const own = kind === "syncJob" || kind === "docMask" ? ids[kind] : { thirdSystemSyncTargetId: Number(id) };
    const etag = stored.nature.etag === "body" ? { "@odata.etag": etagOf(stored) } : {};
    return { ...own, ...stored.fields, ...etag };
  }
}

interface Answered {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

function etagOf({ version }: Stored): string {
  return `W/"${version}"`;
}
