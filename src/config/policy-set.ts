// The policies as the rest of Syncline sees them: checked, with every default filled in. Made by normalise.ts.
// Holds no secret: a token is a path or the name of a variable.

import type { DeclaredObject } from "../core/declared-object.ts";
import type { ListName } from "../core/list-name.ts";
import type { NoticeKind } from "./notice-kinds.ts";
import type { ChainEnding } from "./schema/after.ts";

/** What the fields of a list's items mean: CEL texts over `item`. */
export interface ItemMapping {
  readonly id?: string;
  readonly syncJobId?: string;
  readonly startedAt?: string;
  readonly finished?: string;
  readonly succeeded?: string;
  readonly label?: string;
}

/** Where a bearer token is. Paths are absolute. */
export type TokenSource =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "env"; readonly variable: string }
  | {
      readonly kind: "oauth2";
      readonly tokenUrl: string;
      readonly clientId: string;
      readonly clientSecretFile: string;
      readonly scope: string | undefined;
      readonly auth: "basic" | "post";
      readonly allowHttp: boolean;
    };

/** Certificates of a service. Paths are absolute. */
export interface TlsSettings {
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly keyPassphraseFile: string | undefined;
  readonly serverName: string | undefined;
}

/** One service. The base URL has no slash at its end. */
export interface ServiceSettings {
  readonly name: string;
  readonly baseUrl: string;
  readonly token: TokenSource;
  /** undefined: the public authorities and no client certificate. */
  readonly tls: TlsSettings | undefined;
  readonly pathForm: "parentheses" | "segment";
  /** Actions that one replica works on at a time, 1 to 100. */
  readonly concurrency: number;
  /** What all replicas together may ask of the service; undefined: no limit. */
  readonly limits: {
    /** Requests at a time, 1 to 100. */
    readonly concurrencyMax: number | undefined;
    /** 0.01 to 1,000. */
    readonly requestsPerSecond: number | undefined;
  };
  /** After so many failures in a row nothing is sent any more but one read each period. */
  readonly breaker: { readonly after: number; readonly probeMs: number };
  readonly requestTimeoutMs: number;
  readonly mapping: ReadonlyMap<ListName, ItemMapping>;
  /** By what a sync job shows that it is active, as CEL over `item`, and the properties to ask for; none: those that come unasked. */
  readonly syncJob?: { readonly active: string; readonly select: readonly string[] };
  /** Whom the token stands for; looked at by `syncline doctor` only. */
  readonly identity?: { readonly id: string; readonly repository: string; readonly administrator: boolean };
}

/** What a policy does. `activate`: before each run the sync job is activated. `fromMasks` picks the sync jobs when the slot is due; `name` is a glob with * and ? there, and the exact name in `delete`. */
export type Action =
  | { readonly kind: "run"; readonly syncJobs: readonly number[]; readonly activate?: true }
  | {
      readonly kind: "run";
      readonly fromMasks: { readonly type?: string; readonly name?: string };
      readonly activate?: true;
    }
  | { readonly kind: "activate"; readonly syncJobs: readonly number[] }
  | { readonly kind: "delete"; readonly syncJob: number; readonly name: string }
  | { readonly kind: "apply"; readonly objects: readonly DeclaredObject[] }
  | PollAction;

/** A poll: `expect` is a CEL text over the list, `offending` one over an item. `notifyOn`: which outcomes are told; unless set, `change`. */
export interface PollAction {
  readonly kind: "poll";
  readonly list: ListName;
  readonly expect: string | undefined;
  readonly offending?: string;
  readonly notifyOn?: "change" | "always";
}

/** What a clock change does to a slot: in the hour that is left out, and in the hour that is repeated. */
export interface DstRule {
  readonly gap: "next" | "skip";
  readonly overlap: "first" | "second" | "both";
}

/** When a policy is due. `spreadMs` is the window inside which its slots are moved; 0 for none. */
export type Schedule =
  | {
      readonly kind: "cron";
      readonly expressions: readonly string[];
      readonly timezone: string;
      readonly dst: DstRule;
      readonly spreadMs: number;
    }
  | { readonly kind: "every"; readonly everyMs: number; readonly spreadMs: number }
  | {
      readonly kind: "once";
      /** Local date and time with seconds, `2026-12-01T06:00:00`. */
      readonly at: string;
      readonly timezone: string;
      /** Of a time that comes twice `both` means the first: once is once. */
      readonly dst: DstRule;
      readonly spreadMs: number;
    };

/**
 * What a policy follows: a slot of `policy` whose tasks all ended in one of `on`, up to `withinMs` after that slot.
 * `root`: where its chain begins; the slots are that schedule's, with that policy's spread.
 */
export interface After {
  readonly policy: string;
  readonly on: readonly ChainEnding[];
  readonly withinMs: number;
  readonly root: { readonly name: string; readonly schedule: Schedule };
}

/** How a started run is watched. For activate and poll: until accepted. */
export interface Follow {
  readonly until: "accepted" | "settled" | "quiet";
  readonly deadlineMs: number;
  /** How long the activities must stay quiet after they grew, to settle a run without direct evidence. */
  readonly quietForMs: number;
  /** Activities or conflicts that cannot be read for this long leave the run unknown. */
  readonly unreadableForMs: number;
  /** How long nothing may finish while an approval waits, before the run is blocked, less than the deadline; undefined: approvals are not read. */
  readonly blockedAfterMs: number | undefined;
  /** So soon after a start its activity stands in the list, as the operator vouches; undefined: nobody knows. */
  readonly appearsWithinMs?: number;
  /** More new conflicts make the outcome `conflicts`; undefined: as 0. */
  readonly conflictsMax: number | undefined;
}

/** When slots of a policy do not start: windows that open at a cron instant, and local dates (`2026-12-25`), both in this zone. */
export interface ClosedTimes {
  readonly timezone: string;
  readonly blackouts: readonly { readonly cron: string; readonly durationMs: number }[];
  readonly holidays: readonly string[];
}

/**
 * What one sink is told of a policy. `every`: each outcome. `failuresInRow`: from so many slots in a row on. `conflicts`: `judged` when the
 * outcome is `conflicts`, a number when there are more new ones. `recovery`: the end of what it was told. undefined: not told.
 */
export interface NotifyRule {
  readonly sink: string;
  readonly every: boolean;
  readonly failuresInRow: number | undefined;
  readonly conflicts: "judged" | number | undefined;
  readonly blocked: boolean;
  readonly unknown: boolean;
  readonly missed: boolean;
  readonly drift: boolean;
  readonly recovery: boolean;
  readonly silence: boolean;
  readonly tokenExpiring: boolean;
}

/** How messages are gathered. Minutes are those of the day on the wall clock, 0 to 1,439; hours that end earlier than they begin pass midnight. */
export interface TellingSettings {
  readonly groupForMs: number;
  readonly quietHours:
    | {
        readonly fromMinute: number;
        readonly toMinute: number;
        readonly timezone: string;
        readonly except: readonly NoticeKind[];
      }
    | undefined;
}

/** One policy. Without a schedule and without `after` it runs by hand only; it never has both. */
export interface Policy {
  readonly name: string;
  readonly service: string;
  readonly repository: string | undefined;
  readonly action: Action;
  readonly schedule: Schedule | undefined;
  readonly after?: After;
  readonly closed: ClosedTimes;
  readonly catchUp: "latest" | "none" | "all";
  readonly catchUpWindowMs: number;
  readonly overlap: "skip" | "queue" | "allow";
  readonly follow: Follow;
  readonly onUnknown: "verify" | "retry" | "give-up";
  /** After so many failed slots in a row its slots are skipped for a while; undefined: never. */
  readonly quarantine?: { readonly after: number; readonly forMs: number } | undefined;
  /** Who is told what; a sink stands in it once. undefined: nobody. */
  readonly notify?: readonly NotifyRule[];
  /** Asked after each success. The URL may be a secret. */
  readonly heartbeat?: { readonly url: string };
  readonly where: { readonly file: string; readonly line: number };
}

/** A signed HTTP call for each notice. Paths are absolute. */
export interface WebhookSettings {
  readonly kind: "webhook";
  /** May have a query, which is never shown: with chats the whole path is a secret. */
  readonly url: string;
  readonly secretFile: string | undefined;
  readonly previousSecretFile: string | undefined;
  readonly format: "cloudevents" | "slack" | "teams";
  readonly timeoutMs: number;
}

/** A line of JSON for each notice. The path is absolute. */
export interface FileSinkSettings {
  readonly kind: "file";
  readonly path: string;
  readonly bytesMax: number;
  /** With the one that is written to, 1 to 100. */
  readonly filesMax: number;
}

/** One sink. */
export interface SinkSettings {
  readonly name: string;
  readonly to: WebhookSettings | FileSinkSettings;
  /** From when a notice was handed over. */
  readonly giveUpAfterMs: number;
  /** Notices that may wait, 1 to 100,000. */
  readonly queueMax: number;
  /** Lists whose new items it is told of, while somebody reads them; none unless set. */
  readonly items?: readonly ListName[];
}

/** All policies of a file or folder. */
export interface PolicySet {
  readonly services: ReadonlyMap<string, ServiceSettings>;
  readonly sinks: ReadonlyMap<string, SinkSettings>;
  /** In the order of the files and of the lines. */
  readonly policies: readonly Policy[];
  readonly telling: TellingSettings;
  /** 64 hex digits; changes only when a service, a sink or a policy means something else, not with comments, order or places. */
  readonly contentHash: string;
  readonly files: readonly string[];
}
