// The lists that the service offers, by the names that policies, logs and Redis use.

/** The lists that can be followed, polled and mapped. Source: service-interface §4.1 */
export const listNames = ["activities", "conflictDetails", "approvals", "triggers", "authActivities", "masks"] as const;

/** One of the six lists. */
export type ListName = (typeof listNames)[number];
