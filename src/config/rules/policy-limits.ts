// The limits of a policy file, a folder and one policy: far above what people write, far below what
// could hurt the process. Read by the loader, the schema and the rules.

/** The limits of policy files: sizes in bytes, everything else in items. */
export const policyLimits = {
  /** A file of 1,000 policies with comments is about 200 KiB. */
  fileBytesMax: 256 * 1024,
  filesMax: 200,
  /** A sample of a list, for its mapping: a page of the service is smaller. */
  sampleBytesMax: 1024 * 1024,
  sampleItemsMax: 100,
  /** A policy file needs seven levels; `yaml` can end the process somewhere beyond 600. */
  nestingMax: 32,
  /** Anchors and aliases counted separately, a file. */
  aliasesMax: 50,
  /** Values after aliases are expanded, a file: 256 KiB of `1,` is 131,072. */
  valuesMax: 200_000,
  policiesMax: 10_000,
  servicesMax: 100,
  sinksMax: 50,
  /** Recipients of one e-mail: more are a mailing list. */
  recipientsMax: 50,
  /** Hosts that sinks may be on, a file. */
  outboundHostsMax: 100,
  /** Notices that may wait for one sink, of 1 to 16 KiB each. */
  sinkQueueMax: 100_000,
  syncJobsMax: 1_000,
  /** Declared objects a policy: each is a task of three requests. */
  objectsMax: 500,
  cronExpressionsMax: 20,
  blackoutsMax: 50,
  holidaysMax: 400,
  calendarsMax: 20,
  calendarBytesMax: 1024 * 1024,
  labelsMax: 20,
  ownerCharactersMax: 100,
  digestsMax: 20,
  textCharactersMax: 4_096,
  /** Slots that `catchUp: all` may start at once. */
  catchUpSlotsMax: 100,
  /** Policies in one chain. */
  chainPoliciesMax: 20,
  /** The most problems of a set; one more line counts the rest. */
  problemsMax: 1_000,
  /** The most syntax errors of a file: the first ones cause the others. */
  syntaxProblemsMax: 20,
} as const;
