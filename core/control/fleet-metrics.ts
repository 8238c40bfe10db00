/**
 * What the control plane knows of all bases and workspaces together, as gauges of the console. Every console says the
 * same: take the maximum. No label names a base.
 */
import { Gauge } from "prom-client";
import type { Context } from "../context";

/** Asked once for scrapes that come together. */
const FRESH_MS = 5_000;

interface FleetFacts {
  states: Record<string, number>;
  failing: number;
  /** s; of bases that sweep or turn all the time. */
  longestUnsynced: number;
  /** s since the feed of a live base was due to be read. */
  longestUnread: number;
  stale: number;
  waiting: number;
  repairs: number;
  workers: number;
}

/** Registers the gauges; once per registry. What cannot be asked for is left out of a scrape. */
export function fleetMetrics({ db, metrics, log }: Pick<Context, "db" | "metrics" | "log">): void {
  let asked: Promise<FleetFacts | null> | undefined;
  const facts = () => {
    asked ??= readFacts(db)
      .catch((error: unknown) => {
        log.debug({ error }, "fleet not counted");
        return null;
      })
      .finally(() => setTimeout(() => (asked = undefined), FRESH_MS).unref());
    return asked;
  };
  const gauge = (name: string, help: string, value: (facts: FleetFacts) => number) =>
    new Gauge({
      name: `basetide_fleet_${name}`,
      help: `${help}; the same from every console`,
      registers: [metrics],
      async collect() {
        const known = await facts();
        this.reset();
        if (known) this.set(value(known));
      },
    });
  new Gauge({
    name: "basetide_fleet_bases",
    help: "Bases by state (starting, active, paused, needs_attention, deleting); the same from every console",
    labelNames: ["state"],
    registers: [metrics],
    async collect() {
      const known = await facts();
      this.reset();
      for (const [state, count] of Object.entries(known?.states ?? {})) this.set({ state }, count);
    },
  });
  gauge("bases_failing", "Bases whose last sync failed", (fleet) => fleet.failing);
  gauge(
    "longest_unsynced_seconds",
    "Longest time since a sync of a base that is not live completed",
    (fleet) => fleet.longestUnsynced,
  );
  gauge(
    "longest_unread_seconds",
    "How late the feed of a live base is read, at the most",
    (fleet) => fleet.longestUnread,
  );
  gauge("bases_stale", "Live bases whose rows were found to lag behind", (fleet) => fleet.stale);
  gauge("records_waiting", "Records known to have changed that are not read yet", (fleet) => fleet.waiting);
  gauge(
    "repairs_pending",
    "Records whose proxied write a replica does not show yet",
    (fleet) => fleet.repairs,
  );
  gauge("workers", "Workers that are alive", (fleet) => fleet.workers);
}

async function readFacts(db: Context["db"]): Promise<FleetFacts> {
  const [row] = await db<FleetFacts[]>`
    select
      (select coalesce(json_object_agg(state, count), '{}')
        from (select state, count(*)::int as count from bases group by state) as by_state) as states,
      (select count(*)::int from bases where error_code is not null and state <> 'paused') as failing,
      (select coalesce(max(extract(epoch from now() - sync_completed_at)), 0)::float8 from bases
        left join live_feeds as f on f.base_id = bases.id
        where bases.state = 'active' and sync_kind <> 'live' and (f.state is distinct from 'on' or not live or rapid)
      ) as "longestUnsynced",
      (select greatest(0, coalesce(max(extract(epoch from now() - f.due_at)), 0))::float8
        from live_feeds as f join bases on bases.id = f.base_id
        where bases.state = 'active' and live and not rapid and f.state = 'on') as "longestUnread",
      (select count(*)::int from live_feeds where stale_since is not null) as stale,
      (select coalesce(sum(waiting), 0)::int from live_feeds) as waiting,
      (select count(*)::int from repairs) as repairs,
      (select count(*)::int from workers where seen_at > now() - interval '30 seconds') as workers`;
  return row!;
}
