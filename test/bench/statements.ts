/** Which statements a server spends its time on, as its extension pg_stat_statements counts them. */
import type postgres from "postgres";
import { table } from "./print";

/** Statements shown: those with the most time in total. */
const SHOWN = 15;

/** Settings of a server whose statements are counted, which costs a few µs for each. */
export const countingStatements = { shared_preload_libraries: "pg_stat_statements" };

export class StatementCounts {
  readonly #sql: postgres.Sql;
  #from = 0;

  private constructor(sql: postgres.Sql) {
    this.#sql = sql;
  }

  /** @param sql of a superuser of a server with `countingStatements` */
  static async on(sql: postgres.Sql): Promise<StatementCounts> {
    await sql`create extension if not exists pg_stat_statements`;
    const counts = new StatementCounts(sql);
    await counts.reset();
    return counts;
  }

  /** Counts from now on. */
  async reset(): Promise<void> {
    await this.#sql`select pg_stat_statements_reset()`;
    this.#from = performance.now();
  }

  /** Prints the statements that took longest since the reset. @returns the number of all statements a second */
  async print(what: string): Promise<number> {
    const seconds = (performance.now() - this.#from) / 1000;
    const statements = await this.#sql<{ calls: number; ms: number; query: string }[]>`
      select sum(calls)::float8 as calls, sum(total_exec_time + total_plan_time) as ms, query from pg_stat_statements
      where toplevel and query !~ 'pg_stat_' group by query order by ms desc`;
    console.log(`\n${what}, ${seconds.toFixed(0)} s`);
    table(
      ["calls/s", "µs each", "ms/s", "statement"],
      statements
        .slice(0, SHOWN)
        .map(({ calls, ms, query }) => [
          (calls / seconds).toFixed(1),
          ((ms * 1000) / calls).toFixed(0),
          (ms / seconds).toFixed(2),
          query.replaceAll(/\s+/g, " ").slice(0, 110),
        ]),
    );
    return statements.reduce((sum, { calls }) => sum + calls, 0) / seconds;
  }
}
