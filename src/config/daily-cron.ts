// The cron expression of a time of day on some weekdays: digests and deadlines come from
// the same calendar as the slots of policies.

/** `07:00` on `1-5` as `0 7 * * 1-5`. */
export function dailyCron(at: string, on = "*"): string {
  const [hours, minutes] = at.split(":").map(Number);
  return `${minutes} ${hours} * * ${on}`;
}
