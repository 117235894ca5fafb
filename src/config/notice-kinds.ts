// The kinds of notices as `notifications.muteTiming.except` names them: those of tasks/notice.ts,
// which config does not know. A test (test/unit/config/notify.test.ts) keeps the two alike.

/** Every kind of notice. */
export const noticeKinds = [
  "outcome",
  "failing",
  "recovered",
  "removed",
  "stale",
  "service-down",
  "service-up",
  "token-expiring",
  "drift",
  "items",
] as const;

/** One of the kinds. */
export type NoticeKind = (typeof noticeKinds)[number];
