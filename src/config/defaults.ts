// Every default of a policy file, with its reason. Limits are in policy-limits.ts. Read by
// normalise.ts and by the schema's descriptions.

/** The values that apply when neither the policy nor `defaults` sets one. */
export const policyDefaults = {
  /** An unset time zone must be one that never shifts. */
  timezone: "UTC",
  /** The spring gap moves a slot instead of dropping it: a late run is better than none. */
  dstGap: "next",
  /** The repeated hour in autumn starts a slot once: "at 02:30" means one run. */
  dstOverlap: "first",
  /** Spread must be chosen: without it a slot is when the expression says. */
  spreadMs: 0,
  /** After a stop, one run catches up: a run synchronizes all that has changed. */
  catchUp: "latest",
  /** An older slot is not what the operator meant: the next one is near. */
  catchUpWindowMs: 3_600_000,
  /** A policy that follows another begins on the same day or not at all. */
  afterWithinMs: 86_400_000,
  /** Two runs of one sync job at once are the mistake that operators fear most. */
  overlap: "skip",
  /** A bare 200 says that a run was accepted, not that it worked: follow it to its end. */
  followUntil: "settled",
  /** Longer than runs usually take and shorter than a night. */
  followDeadlineMs: 7_200_000,
  /**
   * Longer than the pauses between two entries of a working run. A run without a mapping has no
   * other sign.
   */
  followQuietForMs: 30_000,
  /** A service that restarts is back by then. */
  followUnreadableForMs: 300_000,
  /** Long enough for a person at work to approve, short enough to alert when none does. */
  followBlockedAfterMs: 300_000,
  /** A lost answer is verified in the service, never guessed. */
  onUnknown: "verify",
  /** Repeating the same result in every message only hides the change. */
  pollNotifyOn: "change",
  /**
   * Long enough not to wake a night shift twice, short enough to end by itself after a repair in
   * the morning.
   */
  quarantineForMs: 21_600_000,
  /** Long enough to gather the failures of one outage, short enough not to delay the message. */
  groupWaitMs: 30_000,
  /**
   * Both path forms are equivalent; parentheses are the OData form. Source: service-interface §4.
   */
  pathForm: "parentheses",
  /**
   * RFC 6749 §2.3.1: every server must know the header, and bodies are logged more often than
   * headers.
   */
  tokenAuth: "basic",
  /** A client secret is worth more than one token: over plain http it goes to this machine only. */
  tokenAllowHttp: false,
  /**
   * Actions a replica. The service's limits are not shown (service-interface §8): enough to be
   * useful, too few to hurt.
   */
  concurrency: 4,
  /** Fewer could be one bad moment; more would be a storm of errors. */
  breakerAfter: 5,
  /**
   * A service that comes back is noticed within half a minute; one that does not is asked 120 times
   * an hour.
   */
  breakerProbeMs: 30_000,
  /**
   * A page of 100 items from a busy service takes seconds; after half a minute no answer will come.
   */
  requestTimeoutMs: 30_000,
  /** Only CloudEvents holds all data; chats get one line. */
  sinkFormat: "cloudevents",
  /** A receiver that needs longer processes the notice before it answers. */
  sinkTimeoutMs: 10_000,
  /** A receiver repaired in the morning still gets the night's notices. */
  sinkGiveUpAfterMs: 86_400_000,
  /** Five files of 10 MB hold some 50,000 outcomes. */
  sinkFileBytesMax: 10_000_000,
  sinkFilesMax: 5,
} as const;
