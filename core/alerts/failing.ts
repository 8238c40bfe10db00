/** The bases that are red or need attention now, for pages. */
import type { Db } from "../context";
import {
  type BaseSummary,
  indicatorOf,
  listBaseSummaries,
  selectBaseSummaries,
  statusOf,
} from "../control/status";
import { conditionOf } from "./observe";

export interface FailingBase {
  id: string;
  accountId: string;
  name: string;
  condition: "red" | "needs_attention";
  /** For the operator, with the answer of Airtable or a server. */
  reason: string;
  /** For the customer: one sentence, without it. */
  headline: string;
}

/** A failing base of any account. */
export interface UnhealthyBase extends FailingBase {
  /** The e-mail address of the account's owner. */
  owner: string;
  since: Date;
}

/** The most bases that the operator's table lists. */
const MOST_LISTED = 100;

/** Those of the account, ordered by name. */
export async function failingBases(db: Db, accountId: string, now: Date): Promise<FailingBase[]> {
  return (await listBaseSummaries(db, accountId)).flatMap((base) => toFailing(base, now));
}

/**
 * Those of all accounts, the oldest failure first. A failure appears here within the interval at which alerts are
 * evaluated: judging every base of a fleet for each view of a page would be too slow.
 */
export async function unhealthyBases(db: Db, now: Date): Promise<{ bases: UnhealthyBase[]; count: number }> {
  const states = await db<{ id: string; since: Date; owner: string; count: number }[]>`
    select s.base_id as id, coalesce(min(b.error_since), min(s.since)) as since, min(a.email) as owner,
      count(*) over ()::int as count
    from alert_states as s
      join bases as b on b.id = s.base_id and b.state not in ('paused', 'deleting')
      join accounts as a on a.id = b.account_id
    where s.kind in ('red', 'needs_attention') and s.state = 'on'
    group by s.base_id order by since, s.base_id limit ${MOST_LISTED}`;
  if (states.length === 0) return { bases: [], count: 0 };
  const summaries = await selectBaseSummaries(db, db`b.id = any (${states.map(({ id }) => id)})`);
  const failing = new Map(summaries.flatMap((base) => toFailing(base, now).map((one) => [one.id, one])));
  const bases = states.flatMap(({ id, since, owner }) => {
    const base = failing.get(id);
    return base ? [{ ...base, since, owner }] : [];
  });
  return { bases, count: states[0]!.count - states.length + bases.length };
}

function toFailing(base: BaseSummary, now: Date): FailingBase[] {
  const { color, reason } = indicatorOf(base, now);
  const condition = conditionOf(base.state, color);
  if (condition !== "red" && condition !== "needs_attention") return [];
  const { headline } = statusOf(base, now);
  const { id, accountId, sourceBaseId } = base;
  return [{ id, accountId, name: base.name || sourceBaseId, condition, reason, headline }];
}
