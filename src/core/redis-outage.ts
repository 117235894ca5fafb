// Tells an outage of Redis from a mistake of Syncline: the one table of Redis's error replies.

/** Replies about Redis or the way to it: it did nothing, and the same command may work later. */
const outageReplies: Readonly<Record<string, string>> = {
  READONLY: "a replica: the master is another one now",
  LOADING: "it reads its file after a start",
  MASTERDOWN: "a replica without its master",
  UNBLOCKED: "a blocking read ended, since the master became a replica",
  CLUSTERDOWN: "slots without a node",
  TRYAGAIN: "a slot is being moved",
  MOVED: "a slot is elsewhere; the client follows a few times",
  ASK: "the same, while it is being moved",
  OOM: "no room",
  NOREPLICAS: "fewer replicas than min-replicas-to-write",
  MISCONF: "it cannot write its file, and refuses writes",
  BUSY: "another client's script runs too long",
  UNKILLABLE: "the same, and it has written",
  NOSCRIPT: "scripts were forgotten between two commands: the text is sent again",
  EXECABORT: "a command of a transaction was refused, for one of these reasons",
  NOAUTH: "no password given: an operator changed it",
  WRONGPASS: "a wrong password, the same",
  NOPERM: "the user lost a right: an operator changed it, and nothing of the step is wrong",
  DENIED: "protected mode, the same",
};

/** Replies without a code that mean the same. */
const outageTexts = /^ERR (max number of clients reached|Script killed by user|WAIT cannot be used with replica)/;

/** Messages of ioredis's plain errors: of a connection, a cut pipeline, a cluster without nodes. */
const outageMessage =
  /^(Connection is closed|Command timed out|Command aborted|Socket timeout|Stream isn't writeable|Too many Cluster redirections|None of startup nodes|Node is disconnected|Cluster is)/;

/** Older servers wrap the error of a command in a script. */
const inScript = /^ERR Error running script .*@user_script: ?\d+: -?(.*)$/;

/** Whether an error reply is about Redis or the way to it. WRONGTYPE and the like are mistakes. */
export function isOutageReply(text: string): boolean {
  const [, inner = text] = inScript.exec(text) ?? [];
  const [code = ""] = /^[A-Z]+/.exec(inner) ?? [];
  return Object.hasOwn(outageReplies, code) || outageTexts.test(inner);
}

/** Whether an error is an outage of Redis or of the way to it: such a step is tried again. */
export function isRedisOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name === "ReplyError") return isOutageReply(error.message);
  return (
    ["MaxRetriesPerRequestError", "ClusterAllFailedError"].includes(error.name) ||
    outageMessage.test(error.message) ||
    ("syscall" in error && "code" in error)
  );
}
