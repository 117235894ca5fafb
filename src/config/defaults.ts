// What holds where a file sets nothing, mostly with the reason. Limits are in policy-limits.ts.

/** The values that hold where neither the policy nor `defaults` sets one. */
export const policyDefaults = {
  /** An unset time zone must be one that never shifts. */
  timezone: "UTC",
  /** The spring gap moves a slot instead of dropping it: a late run is better than none. */
  dstGap: "next",
  /** "At 02:30" means one run, also in autumn. */
  dstOverlap: "first",
  spreadMs: 0,
  /** After a stop, one run catches up: a run synchronizes all that has changed. */
  catchUp: "latest",
  /**
   * An older slot is rarely what the operator meant. Of a short interval the next one is nearer:
   * normalise.ts.
   */
  catchUpWindowMs: 3_600_000,
  /** A policy that follows another begins on the same day or not at all. */
  afterWithinMs: 86_400_000,
  /** Two runs of one sync job at once are the mistake that operators fear most. */
  overlap: "skip",
  /** A bare 200 says that a run was accepted, not that it worked. */
  followUntil: "settled",
  /** Longer than runs usually take and shorter than a night. */
  followDeadlineMs: 7_200_000,
  /** Longer than the pauses of a working run, which shows no other sign without a mapping. */
  followQuietForMs: 30_000,
  /** A service that restarts is back by then. */
  followUnreadableForMs: 300_000,
  /** Long enough for a person at work to approve, short enough to alert when none does. */
  followBlockedAfterMs: 300_000,
  /** A lost answer is verified in the service, never guessed. */
  onUnknown: "verify",
  /** Repeating the same result in every message only hides the change. */
  pollNotifyOn: "change",
  /** Wakes a night shift once, and ends by itself after a repair in the morning. */
  quarantineForMs: 21_600_000,
  /** A busy service often takes twice as long. */
  unusualFactor: 3,
  /** A run that ends within ten minutes keeps no person waiting. */
  unusualFloorMs: 600_000,
  /** Fewer items come and go by chance. */
  unusualItemsFloor: 20,
  /** With fewer runs, an odd one moves the median. */
  unusualRuns: 10,
  /** Long enough to gather the failures of one outage, short enough not to delay the message. */
  groupWaitMs: 30_000,
  /** The OData form; both are equivalent. Source: service-interface §4. */
  pathForm: "parentheses",
  /** RFC 6749 §2.3.1: every server must know the header, and bodies are logged more often. */
  tokenAuth: "basic",
  /** The service's limits are not shown (service-interface §8): useful, and too few to hurt. */
  concurrency: 4,
  /** Fewer could be one bad moment; more would be a storm of errors. */
  breakerAfter: 5,
  /** A service that comes back is noticed soon; one that does not is asked 120 times an hour. */
  breakerProbeMs: 30_000,
  /** A page of a busy service takes seconds; after half a minute no answer will come. */
  requestTimeoutMs: 30_000,
  /** Only CloudEvents holds all data; chats get one line. */
  sinkFormat: "cloudevents",
  /** A receiver that needs longer processes the notice before it answers. */
  sinkTimeoutMs: 10_000,
  /** Submission with TLS from the first byte, as RFC 8314 prefers. */
  emailPort: 465,
  /** Mail servers look senders up before they answer. */
  emailTimeoutMs: 30_000,
  /** A receiver repaired in the morning still gets the night's notices. */
  sinkGiveUpAfterMs: 86_400_000,
  /** Five files of 10 MB hold some 50,000 outcomes. */
  sinkFileBytesMax: 10_000_000,
  sinkFilesMax: 5,
} as const;
