// Every default of a policy file, each with its reason. Read by normalise.ts and by the schema's descriptions.
// Never holds a limit: those are in policy-limits.ts.

/** What holds when neither the policy nor `defaults` says otherwise. */
export const policyDefaults = {
  /** A time zone that nobody chose must be the one that never shifts. */
  timezone: "UTC",
  /** The spring gap moves a slot instead of dropping it: one run too late is better than none. */
  dstGap: "next",
  /** The repeated hour in autumn starts a slot once: nobody expects two runs from "at 02:30". */
  dstOverlap: "first",
  /** Spread is a choice: without it a slot is when the expression says. */
  spreadMs: 0,
  /** After a stop one run catches everything up, since a run synchronizes whatever has changed. */
  catchUp: "latest",
  /** An older slot is no longer what the operator meant: the next one is near. */
  catchUpWindowMs: 3_600_000,
  /** A policy that follows another begins on the same day or not at all. */
  afterWithinMs: 86_400_000,
  /** Two runs of one sync job at once are the mistake that operators fear most. */
  overlap: "skip",
  /** A bare 200 says that a run was accepted, not that it worked: follow it to its end. */
  followUntil: "settled",
  /** Longer than runs usually take and shorter than a night. */
  followDeadlineMs: 7_200_000,
  /** Longer than the pauses between two entries of a run at work; a run without a mapping has nothing else to go by. */
  followQuietForMs: 30_000,
  /** A service that restarts is back by then. */
  followUnreadableForMs: 300_000,
  /** Long enough for somebody who sits at it to approve, short enough to call somebody who does not. */
  followBlockedAfterMs: 300_000,
  /** An answer that got lost is looked for in the service, never guessed. */
  onUnknown: "verify",
  /** Nobody reads the tenth message about the same thing. */
  pollNotifyOn: "change",
  /** Long enough that a night shift is not woken twice, short enough that somebody who mends it in the morning need not remember. */
  quarantineForMs: 21_600_000,
  /** Long enough for the failures of one outage to come in, short enough that nobody waits for the message. */
  groupForMs: 30_000,
  /** Both path forms are equivalent; parentheses are the OData form. Source: service-interface §4. */
  pathForm: "parentheses",
  /** RFC 6749 §2.3.1: every server must know the header, and bodies are logged more often than headers. */
  tokenAuth: "basic",
  /** A client's secret is worth more than one token: it goes over plain http to this machine only. */
  tokenAllowHttp: false,
  /** Actions a replica. The service's limits are not shown (service-interface §8): enough to be useful, too little to hurt. */
  concurrency: 4,
  /** Fewer could be one bad moment of many requests; more would be a storm of errors. */
  breakerAfter: 5,
  /** A service that comes back is noticed within half a minute; one that does not is asked 120 times an hour. */
  breakerProbeMs: 30_000,
  /** A page of 100 items from a busy service takes seconds; half a minute is no longer an answer. */
  requestTimeoutMs: 30_000,
  /** Only CloudEvents says everything; chats take one line. */
  sinkFormat: "cloudevents",
  /** A receiver that needs longer works while it should only take in. */
  sinkTimeoutMs: 10_000,
  /** Whoever mends a receiver in the morning finds the night's notices waiting. */
  sinkGiveUpAfterMs: 86_400_000,
  /** Five files of 10 MB hold some 50,000 outcomes. */
  sinkFileBytesMax: 10_000_000,
  sinkFilesMax: 5,
} as const;
