/**
 * Gauges of the console about all bases and workspaces. Every console reports the same values: take the maximum. No
 * label names a base or a workspace.
 */
import { Gauge } from "prom-client";
import { withTimeout } from "../../async";
import type { Context } from "../../context";
import { type FleetBudgets, readFleetBudgets } from "../budgets";
import { quarantine } from "../jobs";

/** How long a result is reused, for scrapes that arrive together. */
const FRESH_MS = 5_000;
/**
 * How long to wait for the control plane: a scrape ends after 10 s, and a hanging one would make the console appear
 * down.
 */
const PATIENCE_MS = 3_000;

interface FleetFacts {
  states: Record<string, number>;
  failing: number;
  /** s; of bases that run sweeps or cycles all the time. */
  longestUnsynced: number;
  /** s since the feed of a live base was due to be read. */
  longestUnread: number;
  stale: number;
  waiting: number;
  repairs: number;
  workers: number;
  quarantined: Record<string, number>;
}

type Facts = FleetFacts & FleetBudgets;

/** Registers the gauges; call it once per registry. A scrape leaves out values that cannot be read. */
export function fleetMetrics({ db, metrics, log }: Pick<Context, "db" | "metrics" | "log">): void {
  let asked: Promise<Facts | null> | undefined;
  const facts = () => {
    asked ??= Promise.all([readFacts(db), readFleetBudgets(db)])
      .then(([fleet, budgets]) => ({ ...fleet, ...budgets }))
      .catch((error: unknown) => {
        log.debug({ error }, "counting the fleet failed");
        return null;
      })
      .finally(() => setTimeout(() => (asked = undefined), FRESH_MS).unref());
    return withTimeout(PATIENCE_MS, () => null, asked);
  };
  const gauge = (
    name: string,
    help: string,
    value: (facts: Facts) => number | null | Record<string, number>,
    label?: string,
  ) =>
    new Gauge({
      name: `basetide_fleet_${name}`,
      help: `${help}; every console reports the same value`,
      labelNames: label === undefined ? [] : [label],
      registers: [metrics],
      async collect() {
        const known = await facts();
        this.reset();
        const now = known && value(known);
        if (typeof now === "number") this.set(now);
        else if (now) for (const [key, count] of Object.entries(now)) this.set({ [label!]: key }, count);
        // The reset has set it to 0, which would mean that there are no workers.
        else if (label === undefined) this.remove();
      },
    });
  gauge(
    "bases",
    "Bases by state (starting, active, paused, needs_attention, deleting)",
    (fleet) => fleet.states,
    "state",
  );
  gauge("bases_failing", "Bases whose last sync failed", (fleet) => fleet.failing);
  gauge(
    "longest_unsynced_seconds",
    "Longest time since the last completed sync of a base that is not in live mode",
    (fleet) => fleet.longestUnsynced,
  );
  gauge(
    "longest_unread_seconds",
    "Maximum delay in reading the feed of a live base",
    (fleet) => fleet.longestUnread,
  );
  gauge("bases_stale", "Live bases whose replica was found to differ from Airtable", (fleet) => fleet.stale);
  gauge(
    "records_waiting",
    "Records that are known to have changed and have not been read yet",
    (fleet) => fleet.waiting,
  );
  gauge(
    "repairs_pending",
    "Records of proxied writes that a replica does not show yet",
    (fleet) => fleet.repairs,
  );
  gauge(
    "quarantined",
    "Quarantined work that crashed processes, by kind (base, deletion, move, stray, repair)",
    (fleet) => fleet.quarantined,
    "kind",
  );
  gauge("workers", "Running workers", (fleet) => fleet.workers);
  gauge(
    "workspaces",
    "Workspaces with bases, by state of their call budget (no_cap, inside, forecast, spent, over)",
    (fleet) => fleet.workspaces,
    "state",
  );
  gauge(
    "budget_used_ratio",
    "Highest share of its monthly cap that a workspace has used",
    (fleet) => fleet.usedRatio,
  );
  gauge(
    "month_calls",
    "Calls to Airtable since the start of the month (UTC), by kind (sync, client)",
    (fleet) => fleet.calls,
    "kind",
  );
}

async function readFacts(db: Context["db"]): Promise<FleetFacts> {
  const { baseIds, tasks, repairs } = await quarantine(db);
  const count = (kind: string) => tasks.filter(({ task }) => task === kind).length;
  const quarantined = {
    base: baseIds.length,
    deletion: count("deletion"),
    move: count("move"),
    stray: count("stray"),
    repair: repairs.reduce((sum, { records }) => sum + records, 0),
  };
  const [row] = await db<Omit<FleetFacts, "quarantined">[]>`
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
      (select count(*)::int from live_feeds where drifted_since is not null) as stale,
      (select coalesce(sum(waiting), 0)::int from live_feeds) as waiting,
      (select count(*)::int from repairs) as repairs,
      (select count(*)::int from processes
        where role = 'worker' and seen_at > now() - interval '30 seconds') as workers`;
  return { ...row!, quarantined };
}
