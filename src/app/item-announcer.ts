// Hands new items of feeds to the sinks that ask for them (`items` of a sink). Built by app.ts for
// the walks of feeds.
import type { PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { ItemAnnouncer } from "../feeds/publish-items.ts";
import type { Feed } from "../model/feed.ts";
import type { DeliverNotices } from "../model/notice.ts";
import { itemNotices } from "../notify/item-notices.ts";

const batchMax = 500;

/** `sinks`: the sinks in force now. */
interface AnnouncerOptions {
  readonly sinks: () => PolicySet["sinks"];
  readonly deliver: DeliverNotices;
  readonly log: EventLog;
}

/** Makes the announcer. */
export function createItemAnnouncer({ sinks, deliver, log }: AnnouncerOptions): ItemAnnouncer {
  const wanting = ({ list }: Feed) => [...sinks().values()].filter(({ items }) => items?.includes(list) === true);
  return {
    wants: (feed) => wanting(feed).length > 0,
    announce: async (feed, group) => {
      const notices = itemNotices(feed, group, systemClock.nowMs());
      const receivers = wanting(feed);
      const deliveries = notices.flatMap((notice) => receivers.map(({ name: sink }) => ({ sink, notice })));
      for (let from = 0; from < deliveries.length; from += batchMax)
        await deliver(deliveries.slice(from, from + batchMax));
      for (const { sink, notice } of deliveries) {
        const { id, kind, policy, service, title } = notice;
        log.info("notice.published", { sink, kind, policy, service, title, id });
      }
    },
  };
}
