/** What a sync engine of a test copies of its source in memory. */
import type postgres from "postgres";
import { createCellHash, type SourceSelection, selectedSource } from "../../core/source";
import type { Engine } from "./engine";
import { FakeSource } from "./fake-source";

export const testHash = createCellHash("the key of the test");

/** Makes the engine copy only this from now on, as a lease does that begins with another selection; null: everything. */
export function select(engine: Engine, selection: SourceSelection | null): void {
  const { source } = engine;
  source.connection = () => {
    const plain = FakeSource.prototype.connection.call(source);
    return selectedSource(plain, selection ? { selection, hash: testHash } : undefined);
  };
  engine.cache.selection = selection;
  engine.cache.schema = null;
}

/** Every value in the database, as text, of Basetide's own tables as well. */
export async function wholeText(sql: postgres.Sql): Promise<string> {
  const relations = await sql<{ name: string }[]>`
    select format('%I.%I', n.nspname, c.relname) as name from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind in ('r', 'v', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`;
  const texts: string[] = [];
  for (const { name } of relations) {
    const rows = await sql.unsafe<{ text: string }[]>(`select t::text as text from ${name} as t`);
    texts.push(...rows.map(({ text }) => text));
  }
  const comments = await sql<{ text: string }[]>`
    select description as text from pg_description where classoid = 'pg_class'::regclass and objoid >= 16384`;
  return [...texts, ...comments.map(({ text }) => text)].join("\n");
}
