/**
 * Old names that still answer in a base's database, and what still uses them: saved queries, views and functions of the
 * customer's, and statements that ran.
 *
 * Views are found by what they depend on. For texts, a statement counts if it contains the old name as a name, and for a
 * column a name of its table as well: a column of another table may have the same name. The text of a trigger's function
 * need not name the table, whose row it gets.
 */
import type { Context } from "../context";
import { type Base, replicaTarget } from "../control/bases";
import { clusterAdminUrl, getDatabase } from "../control/placement";
import { cutText } from "../cut-text";
import type { ServerUrl } from "../external";
import {
  type Alias,
  type AliasUsers,
  aliasUsers,
  type LostAlias,
  loadAliases,
  loadLostAliases,
  namesInTexts,
  openReplica,
  type StatementCount,
  statementCounts,
  type TableSpec,
} from "../replica";
import { listSavedQueries, type SavedQuery } from "./saved-queries";
import { identifiersOf } from "./split";

export interface OldNameUse {
  kind: "saved query" | "view" | "function" | "trigger" | "statement";
  /** Of the saved query, the view, the function or the trigger; empty for a statement. */
  name: string;
  /** Its SQL, or the beginning of it. */
  text: string;
  /** For a saved query. */
  id?: string;
  /** For a statement: how often it ran since the statistics were reset. */
  calls?: number;
  aliases: Alias[];
}

export interface OldNames {
  aliases: Alias[];
  /** Old names that are not kept, although their time is not over. */
  lost: LostAlias[];
  uses: OldNameUse[];
  /** All statements are known: the server has pg_stat_statements, and Basetide may read it. */
  knowsStatements: boolean;
}

const MOST_TEXT = 2000;
/** Statements that are listed, the most frequent first. */
const MOST_STATEMENTS = 50;

/** @throws BasetideError `replica_unavailable` */
export async function oldNames(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "id" | "accountId" | "database">,
): Promise<OldNames> {
  const target = await replicaTarget(ctx, base);
  await using replica = openReplica(target);
  const [aliases, lost] = [await loadAliases(replica), await loadLostAliases(replica)];
  const all = [...aliases, ...lost];
  if (all.length === 0) return { aliases, lost, uses: [], knowsStatements: true };
  const users = await aliasUsers(replica);
  const saved = await listSavedQueries(ctx.db, base);
  const { statements, isComplete } = await statementCounts({
    database: target.role === undefined ? undefined : base.database.name,
    role: target.role,
    from: await statisticsUrls(ctx, base, target.url),
  });
  return {
    aliases,
    lost,
    uses: usesOf(all, saved, { ...users, statements }),
    knowsStatements: isComplete,
  };
}

/**
 * Returns the functions and triggers of the customer's that name columns of the table: they do not follow a rename. Views
 * do.
 *
 * @throws BasetideError `replica_unavailable`
 */
export async function textsThatName(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "id" | "accountId" | "database">,
  { tableId, name: table, columns }: Pick<TableSpec, "tableId" | "name" | "columns">,
): Promise<OldNameUse[]> {
  await using replica = openReplica(await replicaTarget(ctx, base));
  const texts = await namesInTexts(replica);
  const now = new Date();
  const current = [
    { tableId, fieldId: null, table, column: null, name: table, madeAt: now, expiresAt: now },
    ...columns.map(({ fieldId, name }) => ({
      tableId,
      fieldId,
      table,
      column: name,
      name,
      madeAt: now,
      expiresAt: now,
    })),
  ];
  return usesOf(current, [], { ...texts, views: [], statements: [] });
}

/** Where the server's statistics may be: of a hosted database, in the admin's own one first. */
async function statisticsUrls(
  ctx: Pick<Context, "db" | "secrets">,
  base: Pick<Base, "database">,
  url: ServerUrl,
): Promise<ServerUrl[]> {
  const { clusterId } = await getDatabase(ctx.db, base.database.id);
  return clusterId === null ? [url] : [await clusterAdminUrl(ctx, clusterId), url];
}

export function usesOf(
  aliases: readonly Alias[],
  saved: readonly Pick<SavedQuery, "id" | "name" | "sql">[],
  { views, functions, triggers = [], statements }: AliasUsers & { statements: StatementCount[] },
): OldNameUse[] {
  const byKey = new Map(
    aliases.map((alias) => [keyOf(alias.fieldId ? alias.tableId : "", alias.name), alias]),
  );
  const uses: OldNameUse[] = [
    ...saved.map(({ id, name, sql }) => ({
      kind: "saved query" as const,
      id,
      name,
      text: sql,
      aliases: usedIn(sql, aliases),
    })),
    ...views.map(({ name, text, aliases: used }) => ({
      kind: "view" as const,
      name,
      text,
      aliases: used.flatMap(({ scope, name: old }) => byKey.get(keyOf(scope, old)) ?? []),
    })),
    ...functions.map(({ name, text }) => ({
      kind: "function" as const,
      name,
      text,
      aliases: usedIn(text, aliases),
    })),
    ...triggers.map(({ name, tableId, text }) => ({
      kind: "trigger" as const,
      name,
      text,
      aliases: usedByTrigger(text, tableId, aliases),
    })),
    ...statements
      .map(({ text, calls }) => ({
        kind: "statement" as const,
        name: "",
        text,
        calls,
        aliases: usedIn(text, aliases),
      }))
      .filter((use) => use.aliases.length > 0)
      .slice(0, MOST_STATEMENTS),
  ];
  return uses
    .filter((use) => use.aliases.length > 0)
    .map((use) => ({ ...use, text: cutText(use.text, MOST_TEXT) }));
}

function usedIn(sql: string, aliases: readonly Alias[]): Alias[] {
  const names = identifiersOf(sql);
  return aliases.filter(({ tableId, fieldId, table, name }) => {
    if (!names.has(name)) return false;
    if (!fieldId) return true;
    const tables = aliases.filter((other) => other.tableId === tableId && !other.fieldId);
    return names.has(table) || tables.some((other) => names.has(other.name));
  });
}

/** A trigger's function has the columns as members of a row, or as keys of its JSON. */
function usedByTrigger(text: string, onTable: string, aliases: readonly Alias[]): Alias[] {
  const names = identifiersOf(text);
  const own = aliases.filter(
    ({ tableId, fieldId, name }) =>
      tableId === onTable && fieldId !== null && (names.has(name) || text.includes(`'${name}'`)),
  );
  return [...own, ...usedIn(text, aliases).filter((alias) => !own.includes(alias))];
}

function keyOf(scope: string, name: string): string {
  return JSON.stringify([scope, name]);
}
