// Adds to a notice what people need beside it: the zone of their clock, who to call, and where to
// look. All come from the policy set. Pure.

import type { Policy, PolicySet } from "../config/policy-set.ts";
import { fillLink } from "../config/schema/notify.ts";
import type { Notice } from "../model/notice.ts";

type Settings = Pick<PolicySet, "policies" | "notifications">;

/** The notice with zone and owner of its policy, and the link of `notifications.link`. */
export function withContext(notice: Notice, set: Settings, policy?: Policy): Notice {
  const timezone = policy?.closed.timezone ?? zoneOfService(set, notice.service);
  const { link: template } = set.notifications;
  const link = template === undefined ? undefined : fillLink(template, notice);
  return {
    ...notice,
    ...(policy?.owner === undefined ? {} : { data: { ...notice.data, owner: policy.owner } }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(link === undefined ? {} : { link }),
  };
}

/** The zone that all policies of a service have; undefined when they differ. */
function zoneOfService({ policies }: Settings, service: string | null): string | undefined {
  const zone = policies.find((one) => one.service === service)?.closed.timezone;
  return policies.every((one) => one.service !== service || one.closed.timezone === zone) ? zone : undefined;
}
