// Hands new items of feeds to the sinks that want them (`items` of a sink). Built by app.ts for the readers of feeds.
import type { PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { ItemAnnouncer } from "../feeds/announce-items.ts";
import type { Feed } from "../tasks/feed.ts";
import type { DeliverNotices } from "../tasks/notice.ts";
import { itemNotices } from "../telling/item-notices.ts";

const portionMax = 500;

/** What the announcer needs. `sinks`: those of now. */
interface AnnouncerOptions {
  readonly sinks: () => PolicySet["sinks"];
  readonly deliver: DeliverNotices;
  readonly log: EventLog;
}

/** Makes it. */
export function createItemAnnouncer({ sinks, deliver, log }: AnnouncerOptions): ItemAnnouncer {
  const wanting = ({ list }: Feed) => [...sinks().values()].filter(({ items }) => items?.includes(list) === true);
  return {
    wants: (feed) => wanting(feed).length > 0,
    announce: async (feed, group) => {
      const notices = itemNotices(feed, group, systemClock.nowMs());
      const receivers = wanting(feed);
      const deliveries = notices.flatMap((notice) => receivers.map(({ name: sink }) => ({ sink, notice })));
      for (let from = 0; from < deliveries.length; from += portionMax)
        await deliver(deliveries.slice(from, from + portionMax));
      for (const { sink, notice } of deliveries) {
        const { id, kind, policy, service, title } = notice;
        log.info("notice.told", { sink, kind, policy, service, title, id });
      }
    },
  };
}
