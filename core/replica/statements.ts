/**
 * Statements that clients ran in a database, as the extension pg_stat_statements has counted them.
 *
 * Only roles with `pg_read_all_stats` see the statements of others: to all others, the extension shows a placeholder.
 */
import type { Sql } from "postgres";
import type { ServerUrl } from "../external";
import { usersOf } from "./database-roles";
import { quoteIdent } from "./naming";
import { withAdmin } from "./provision";

/** The most frequent ones; the rest is not looked at. */
export const MOST_USERS = 1000;
/** Characters of each text. */
export const MOST_TEXT_READ = 20_000;
/** What the extension shows instead of a text that the role may not read. */
const HIDDEN = "<insufficient privilege>";

export interface StatementCount {
  text: string;
  calls: number;
}

export interface StatementCounts {
  /** The most frequent first. */
  statements: StatementCount[];
  /** Nothing is missing: the extension is there, and its texts can be read. */
  isComplete: boolean;
}

export interface StatementPlace {
  /** Undefined: the one that `from` leads to. */
  database: string | undefined;
  /**
   * The database's own role, whose statements and those of its SQL users count. Without it, those of all roles: in a
   * database of the customer's.
   */
  role: string | undefined;
  /**
   * Databases of the server in which the extension may be: it counts for the whole server. In a hosted one, its tenant
   * could read how much others do, so the admin's own is asked first.
   */
  from: ServerUrl[];
}

/** Utility statements, and Basetide's own in a database where it has the customer's role. */
const LEFT_OUT = String.raw`_swap"?\.|^\s*(begin|commit|rollback|set|show|alter|create|drop|comment|grant|revoke)\M`;

/** Returns the statements that ran since the statistics were reset. */
export async function statementCounts({ database, role, from }: StatementPlace): Promise<StatementCounts> {
  for (const url of from) {
    const found = await withAdmin(url, (admin) => countsIn(admin, database, role));
    if (found) return found;
  }
  return { statements: [], isComplete: false };
}

/** Returns null without the extension, or if it is not loaded, or not for this role. */
async function countsIn(
  admin: Sql,
  database: string | undefined,
  role: string | undefined,
): Promise<StatementCounts | null> {
  const [extension] = await admin<{ schema: string; isReader: boolean }[]>`
    select n.nspname as schema, pg_has_role('pg_read_all_stats', 'usage') as "isReader"
    from pg_extension as e join pg_namespace as n on n.oid = e.extnamespace
    where e.extname = 'pg_stat_statements'`;
  if (!extension) return null;
  const roles = role === undefined ? null : [role, ...(await usersOf(admin, role))];
  try {
    const statements = await admin<StatementCount[]>`
      select left(s.query, ${MOST_TEXT_READ}) as text, sum(s.calls)::float8 as calls
      from ${admin.unsafe(quoteIdent(extension.schema))}.pg_stat_statements as s
      where s.dbid = (select d.oid from pg_database as d where d.datname = coalesce(${database ?? null}::text, current_database()))
        and (${roles}::text[] is null
          or s.userid in (select r.oid from pg_roles as r where r.rolname = any (${roles}::text[])))
        and s.query <> ${HIDDEN} and s.query !~* ${LEFT_OUT}
      group by 1 order by 2 desc limit ${MOST_USERS}`;
    return { statements: [...statements], isComplete: extension.isReader };
  } catch (error) {
    if (UNREADABLE.has((error as { code?: string }).code ?? "")) return null;
    throw error;
  }
}

/** Not loaded at the server's start; its schema or view may not be read. */
const UNREADABLE = new Set(["55000", "42501", "42P01"]);
