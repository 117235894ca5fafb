// Written from openapi.json by `npm run docs:api`.

export type Acknowledged = { actor: string; note: string; since: string };
export type Attention = { about: "installation" | "service" | "sink" | "list" | "policy"; name: string; state: string; what: string; since: string | null; lastGood: string | null; slot: string | null; acknowledged: Acknowledged | null; policies: Array<string>; policiesCount: number; owner: string | null; healsByItself: boolean; nextStep: string };
export type Audit = { policy: string; after?: string | null; to?: string | null; slots: number; recorded?: number; pending?: number; waiting?: number; states?: Record<string, number>; outcomesKeptSince?: string | null; missed?: Array<{ slot: string | null; why: string }>; inFlight?: number; off?: number; notes: Array<string>; findings: Array<{ slot: string; problem: string; taskId: string | null }> };
export type Caller = { name: string; scope: string; services: Array<string> | null; labels: Record<string, string> | null };
export type Change = { at: string; actor: string; what: string; subject: string; reason: string | null; before: unknown; after: unknown; isBegun?: true; from?: { address: string; requestId: string } };
export type ComingSlot = { slot: string; closed: string | null; dst: string | null };
export type Config = { version: string; hash: string; files: Array<string>; policies: number; services: Array<string>; processes: Array<{ where: string; roles: Array<string>; version: string; hash: string; since: string; rejected: { since: string; where: string; message: string } | null }> };
export type Day = { date: string; statuses: Record<string, number>; skippedSlots: number; missedSlots: number; newConflicts: number; longestMs: number | null; medianMs: number | null; p95Ms: number | null };
export type Declared = { policy: string; service: string; repository: string | null; object: string; last: { status: string; reason: string; finished: string } | null };
export type FailedListResult = { done: Array<{ id: string; into?: string }>; left: Array<{ id: string; why: string }>; isAll: boolean };
export type FailedTask = { id: string; isCorrected: boolean; outcome: Outcome };
export type Feed = { service: string; repository: string | null; list: string; items: number; newSinceYesterday: number; isNewSinceYesterdayAtLeast: boolean; lastRead: string | null; tookMs: number | null; lastReadWhole: string | null; readWholeBecause: string | null; failingSince: string | null; failure: string | null; fieldsChanged: string | null; fieldChanges: string | null };
export type FeedItem = { id: string; firstSeen: string | null; syncJobId?: string; started: string | null; finished?: boolean; succeeded?: boolean; label?: string };
export type HandRun = { id: string; policy: string; kind: "run" | "activate" | "apply" | "delete" | "poll"; target: string; given: string; actor: string | null; reason: string | null; outcome: Outcome | null };
export type LastOutcome = { taskId: string; target: string; status: "succeeded" | "conflicts" | "accepted" | "failed" | "blocked" | "timed-out" | "unknown" | "not-started" | "skipped" | "missed"; evidence: "direct" | "inferred" | "none"; confidence: string | null; reason: string; slot: string; finished: string };
export type Open = { service: string; repository: string | null; syncJobId: string | null; open: number; newSinceYesterday: number; isNewSinceYesterdayAtLeast: boolean; oldestSinceAtLeast: string | null; counted: string };
export type Outcome = { v: 1; taskId: string; policy: string; service: string; repository: string | null; kind: "run" | "activate" | "apply" | "delete" | "poll"; target: string; origin: "schedule" | "manual"; slot: string; covers: number; coveredSlots?: Array<string>; status: "succeeded" | "conflicts" | "accepted" | "failed" | "blocked" | "timed-out" | "unknown" | "not-started" | "skipped" | "missed"; evidence: "direct" | "inferred" | "none"; reason: string; detail: string; startedAt: string | null; finishedAt: string; durationMs: number | null; attempts: number; answerLost: boolean; sends?: number; confidence?: "certain" | "likely" | "ambiguous"; newConflicts: number | null; goneConflicts?: number; stillConflicts?: number; activities?: number; unusual?: Array<"duration" | "activities" | "conflicts">; usualMs?: number; usualActivities?: number; usualConflicts?: number; toldLong?: true; count: number | null; changed?: boolean; offending?: number; offendingItems?: Array<string> };
export type Pause = { scope: "policy" | "service" | "label" | "all"; name: string; note: string; actor: string; since: string; until: string | null; isQuarantine: boolean };
export type Plan = { asOf: string; from: string; to: string; cutAt: string | null; countedUntil: string | null; services: Array<{ service: string; policies: number; slots: number; away: number; meets: number; requests: number; hours: Array<{ from: string; slots: number; away: number; meets: number; requests: number }> }>; peaks: Array<{ from: string; starts: number; policies: Array<string> }>; slots: Array<{ policy: string; service: string; timezone: string; slot: string; begins: string | null; ends: string | null; state: string; detail: string; kind: string; targets: Array<string> | null; clashes: Array<{ target: string; what: string; by?: string; waitMs: number }>; meetsRunning: Array<string>; deadlineMissed: string | null }>; durationsUnknown: Array<string>; running: Array<{ taskId: string; policy: string; target: string; sent: string; usualMs: number; endsAbout: string }> };
export type Policy = { name: string; service: string; repository: string | null; kind: string; targets: Array<string> | null; labels: Record<string, string>; owner: string | null; health: "quarantined" | "failing" | "unknown" | "missed" | "late" | "unplanned" | "blocked" | "conflicts" | "service-down" | "paused" | "new" | "ok"; needsPerson: boolean; acknowledged: Acknowledged | null; since: string | null; inARow: number; last: LastOutcome | null; lastGood: string | null; usualDurationMs: number | null; unusual: string | null; next: string | null; late: { deadline: string; since: string; why: string } | null; openConflicts: number | null; pause: Pause | null; file: string; line: number };
export type PolicyDetail = { policy: Policy; slots: Array<Slot>; isAll: boolean };
export type Problem = { type: string; title: string; status: number; detail: string; hint?: string; instance: string; errors?: Array<{ pointer: string; detail: string }> };
export type Service = { name: string; baseUrl: string; breaker: "closed" | "open"; openSince: string | null; nextProbe: string | null; failures: number; lastFailure: string | null; throttledUntil: string | null; inFlight: number; policies: number };
export type ServiceDetail = { service: Service; policies: Array<{ name: string; health: "quarantined" | "failing" | "unknown" | "missed" | "late" | "unplanned" | "blocked" | "conflicts" | "service-down" | "paused" | "new" | "ok" }> };
export type Sink = { sink: string; waiting: number; oldest: string | null; failed: number; dropped: number };
export type Slot = { slot: string; ending: string; durationMs: number | null; note: string };
export type SlotStory = { policy: string; origin: "schedule" | "manual"; isSlot: boolean; reasons: Array<string>; previous: string | null; next: string | null; slot: string | null; verdict: string; deadline: string | null; covers: Array<string>; tasks: Array<TaskStory>; held: string | null; missingRoles: Array<string> };
export type Started = { tasks: Array<string>; workers: number };
export type TaskStory = { taskId: string; name: string; target: string; journal: string; queue: string | null; due: string; queued: string | null; sent: string | null; sentAgain: string | null; answered: string | null; confirmed: string | null; finished: string | null; outcome: { status: "succeeded" | "conflicts" | "accepted" | "failed" | "blocked" | "timed-out" | "unknown" | "not-started" | "skipped" | "missed"; evidence: "direct" | "inferred" | "none"; reason: string; detail: string; confidence?: string; sends?: number } | null; isInFlight: boolean; now: string | null; droppedUpTo: string | null; waitsFor: string | null; lost: string | null; cancelled: string | null };
export type Validated = { ok: boolean; policies: number; problems: Array<{ file: string; line: number; column: number; message: string; hint: string | null }> };

/** Each operation: what it takes, and what it answers. */
export interface Operations {
  /** What is not well now; acknowledged last. */
  listAttention: { method: "GET"; url: "/api/v1/attention"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: { items: Array<Attention>; counts: Record<string, number> } };
  /** What is planned for the next hours: slots, which runs meet, about how many requests. */
  planAhead: { method: "GET"; url: "/api/v1/plan"; path: Record<string, never>; query: { hours?: number }; header: Record<string, never>; body: undefined; answer: Plan };
  /** The services: breaker, throttling, requests under way, policies. */
  listServices: { method: "GET"; url: "/api/v1/services"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: { items: Array<Service> } };
  /** One service, and how its policies are, worst first. */
  getService: { method: "GET"; url: "/api/v1/services/{name}"; path: { name: string }; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: ServiceDetail };
  /** What waits for the receivers of notices. */
  listSinks: { method: "GET"; url: "/api/v1/sinks"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: { items: Array<Sink> } };
  /** Which policies are in force, and what each process runs. */
  getConfig: { method: "GET"; url: "/api/v1/config"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: Config };
  /** Who asks, and what that one may see. */
  getCaller: { method: "GET"; url: "/api/v1/me"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: Caller };
  /** All policies as they are now, by name. */
  listPolicies: { method: "GET"; url: "/api/v1/policies"; path: Record<string, never>; query: { limit?: number; after?: string; health?: "quarantined" | "failing" | "unknown" | "missed" | "late" | "unplanned" | "blocked" | "conflicts" | "service-down" | "paused" | "new" | "ok"; service?: string; label?: string; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Policy>; next: string | null } };
  /** One policy, with its newest slots, oldest first. */
  getPolicy: { method: "GET"; url: "/api/v1/policies/{name}"; path: { name: string }; query: { slots?: number }; header: Record<string, never>; body: undefined; answer: PolicyDetail };
  /** What became of a policy's slots, newest first. */
  listSlots: { method: "GET"; url: "/api/v1/policies/{name}/slots"; path: { name: string }; query: { limit?: number; after?: string; since?: string; until?: string; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Slot>; next: string | null } };
  /** What a policy did on each of its last days, in its own zone, oldest first. */
  listDays: { method: "GET"; url: "/api/v1/policies/{name}/days"; path: { name: string }; query: { days?: number; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Day> } };
  /** The next slots of a policy, with closed times and clock changes. */
  listComingSlots: { method: "GET"; url: "/api/v1/policies/{name}/plan"; path: { name: string }; query: { count?: number; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<ComingSlot> } };
  /** What was started by hand of a policy, newest first; of `-`: of sync jobs without a policy. */
  listHandRuns: { method: "GET"; url: "/api/v1/policies/{name}/by-hand"; path: { name: string }; query: { limit?: number; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<HandRun>; isAll: boolean } };
  /** What became of a slot and its tasks, or of the slot nearest to an instant. */
  explainSlot: { method: "GET"; url: "/api/v1/slots/{policy}/{instant}"; path: { policy: string; instant: string }; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: SlotStory };
  /** What became of one task, of a slot or by hand. */
  explainTask: { method: "GET"; url: "/api/v1/tasks/{id}"; path: { id: string }; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: SlotStory };
  /** The pauses and quarantines in force, newest first. */
  listPauses: { method: "GET"; url: "/api/v1/pauses"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: undefined; answer: { items: Array<Pause> } };
  /** Skip the slots of a policy, a service, a label or all from now on; replaces the pause in force. */
  pause: { method: "POST"; url: "/api/v1/pauses"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: { target: string; until?: string; for?: string; reason: string }; answer: Pause };
  /** How tasks ended, newest first. */
  listOutcomes: { method: "GET"; url: "/api/v1/outcomes"; path: Record<string, never>; query: { limit?: number; after?: string; policy?: string; label?: string; status?: "succeeded" | "conflicts" | "accepted" | "failed" | "blocked" | "timed-out" | "unknown" | "not-started" | "skipped" | "missed"; service?: string; since?: string; until?: string; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Outcome>; next: string | null } };
  /** Tasks that failed and may be done over, newest first. */
  listFailed: { method: "GET"; url: "/api/v1/failed"; path: Record<string, never>; query: { limit?: number; after?: string; label?: string; since?: string; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<FailedTask>; next: string | null; isAll: boolean } };
  /** Is every slot that was due recorded once? Policies by name, each of a span; see `off`. */
  auditSlots: { method: "GET"; url: "/api/v1/audit"; path: Record<string, never>; query: { limit?: number; after?: string; policy?: string; q?: string; label?: string; since?: string; until?: string; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Audit>; next: string | null } };
  /** The objects that apply policies declare, and how each was applied last. */
  listDeclared: { method: "GET"; url: "/api/v1/declared"; path: Record<string, never>; query: { limit?: number; after?: string; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Declared>; next: string | null } };
  /** What was changed or tried by hand, newest first: who, when, what and why. */
  listChanges: { method: "GET"; url: "/api/v1/changes"; path: Record<string, never>; query: { limit?: number; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Change>; isAll: boolean } };
  /** The followed lists: how old their reading is, what is new since yesterday. */
  listFeeds: { method: "GET"; url: "/api/v1/feeds"; path: Record<string, never>; query: { format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Feed>; listsLeftOut: number } };
  /** The newest items of a list as the mapping reads them; repository `~`: the service's default. */
  listFeedItems: { method: "GET"; url: "/api/v1/feeds/{service}/{repository}/{list}/items"; path: { service: string; repository: string; list: "activities" | "conflictDetails" | "approvals" | "triggers" | "authActivities" | "masks" }; query: { limit?: number; format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<FeedItem>; isAll: boolean } };
  /** Open conflicts per sync job, most first. */
  listConflicts: { method: "GET"; url: "/api/v1/conflicts"; path: Record<string, never>; query: { format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Open>; listsLeftOut: number } };
  /** Open approvals per sync job, most first. */
  listApprovals: { method: "GET"; url: "/api/v1/approvals"; path: Record<string, never>; query: { format?: "json" | "ndjson" | "csv" }; header: Record<string, never>; body: undefined; answer: { items: Array<Open>; listsLeftOut: number } };
  /** End the pause, or the quarantine, of exactly this policy, service or label, or the one of all. */
  resume: { method: "DELETE"; url: "/api/v1/pauses/{target}"; path: { target: string }; query: { reason: string; catchUp?: string }; header: Record<string, never>; body: undefined; answer: { ended: Array<Pause>; stillPaused: Array<Pause>; caughtUp: Array<{ policy: string; slot: string; tasks: Array<string> }>; left: Array<string> } };
  /** Run a policy now, whatever its schedule and its pauses say. */
  runPolicy: { method: "POST"; url: "/api/v1/policies/{name}/runs"; path: { name: string }; query: Record<string, never>; header: { "Idempotency-Key": string }; body: { reason: string }; answer: Started };
  /** Run a sync job that has no policy now, as the defaults of the policy files say. */
  runSyncJob: { method: "POST"; url: "/api/v1/services/{name}/runs"; path: { name: string }; query: Record<string, never>; header: { "Idempotency-Key": string }; body: { syncJob: number; repository?: string; reason: string }; answer: Started };
  /** Note that you know what is wrong; ends when it is well again or gets worse. */
  acknowledge: { method: "PUT"; url: "/api/v1/policies/{name}/acknowledgement"; path: { name: string }; query: Record<string, never>; header: Record<string, never>; body: { reason: string }; answer: Acknowledged };
  /** Take an acknowledgement back. */
  endAcknowledgement: { method: "DELETE"; url: "/api/v1/policies/{name}/acknowledgement"; path: { name: string }; query: { reason: string }; header: Record<string, never>; body: undefined; answer: Record<string, never> };
  /** Do over what is on the failed list: name ids, or a policy, a label, a sink or all. */
  replayFailed: { method: "POST"; url: "/api/v1/failed/replay"; path: Record<string, never>; query: Record<string, never>; header: { "Idempotency-Key": string }; body: { ids?: Array<string>; policy?: string; label?: string; sink?: string; all?: true; corrected?: true; force?: boolean; reason: string }; answer: FailedListResult };
  /** Take entries off the failed list; outcomes stay in the history. */
  discardFailed: { method: "POST"; url: "/api/v1/failed/discard"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: { ids?: Array<string>; policy?: string; label?: string; sink?: string; all?: true; corrected?: true; reason: string }; answer: FailedListResult };
  /** Send nothing more of a task, and stop to follow what was sent: it goes on at the service. */
  cancelTask: { method: "POST"; url: "/api/v1/tasks/{id}/cancel"; path: { id: string }; query: Record<string, never>; header: Record<string, never>; body: { reason: string }; answer: { wasSent: boolean | null } };
  /** Check policy files, by name, as one set; changes nothing. */
  validateConfig: { method: "POST"; url: "/api/v1/config/validate"; path: Record<string, never>; query: Record<string, never>; header: Record<string, never>; body: { files: Record<string, string>; variables?: Record<string, string> }; answer: Validated };
}
