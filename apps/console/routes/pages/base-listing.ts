/** Reads one page of the list of bases. */
import type { Db } from "../../../../core/context";
import { todayOf } from "../../../../core/control/history";
import { selectBaseSummaries, statusOf } from "../../../../core/control/status";
import { LIST_ROWS, type ListChoice, type ListedBase } from "../../../../views/base/list";
import { choose, withinPages } from "./base-choice";

interface BasePage {
  bases: ListedBase[];
  matches: number;
  choice: ListChoice;
  total: number;
  now: Date;
}

/** The usual list, by name and without a filter, reads no other bases than those of its page. */
export async function readList(db: Db, accountId: string, asked: ListChoice): Promise<BasePage> {
  const [facts] = await db<{ now: Date; total: number }[]>`
    select now() as now, count(*)::int as total from bases where account_id = ${accountId}`;
  const { now, total } = facts!;
  const { query, state, sort } = asked;
  if (query !== "" || state !== "all" || sort !== "name") {
    const all = await listBases(db, db`b.account_id = ${accountId}`, now);
    const found = choose(all, asked, now);
    const choice = withinPages(asked, found.length);
    const from = (choice.page - 1) * LIST_ROWS;
    const bases = found.slice(from, from + LIST_ROWS);
    return { bases, matches: found.length, choice, total: all.length, now };
  }
  const choice = withinPages(asked, total);
  const ofPage: ReturnType<Db> = db`
    b.id in (select id from bases where account_id = ${accountId}
      order by lower(name), id limit ${LIST_ROWS} offset ${(choice.page - 1) * LIST_ROWS})`;
  return { bases: await listBases(db, ofPage, now), matches: total, choice, total, now };
}

/** Returns the rows `b` of bases that match `where`, ordered by name. */
async function listBases(db: Db, where: ReturnType<Db>, now: Date): Promise<ListedBase[]> {
  const [summaries, today] = await Promise.all([selectBaseSummaries(db, where), todayOf(db, where, now)]);
  return summaries.map((base) => ({ base, status: statusOf(base, now), today: today.get(base.id) }));
}
