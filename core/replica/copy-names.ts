/**
 * Copies the names of a base to the new, empty database that it moves to: those of its tables and columns, those that
 * were retired while names were pinned, and the old names that still work.
 *
 * The new catalog lists the tables as missing, so that the first sync builds each one by its name, as after somebody
 * dropped them.
 */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/** @throws BasetideError `lease_lost` unless `epoch` is that of the new replica */
export async function copyNames(from: Replica, to: Replica, epoch: number): Promise<void> {
  const names = await onReplica(() => namesOf(from));
  await onReplica(() =>
    to.sql.begin(async (tx) => {
      const ours = tx.unsafe(to.swap);
      await tx`select ${ours}.fence(${epoch})`;
      await tx`
        insert into ${ours}._tables (table_id, name, shape, spec)
        select table_id, name, nextval(${`${to.swap}._shapes`}), spec || '{"isDamaged": true}'
        from jsonb_to_recordset(${names.tables}::text::jsonb) as t (table_id text, name text, spec jsonb)`;
      await tx`
        insert into ${ours}._retired_tables (table_id, name)
        select table_id, name from jsonb_to_recordset(${names.retired}::text::jsonb) as r (table_id text, name text)`;
      await tx`
        insert into ${ours}._aliases (scope, name, table_id, field_id, made_at, expires_at)
        select scope, name, table_id, field_id, made_at, expires_at
        from jsonb_to_recordset(${names.aliases}::text::jsonb) as a (
          scope text, name text, table_id text, field_id text, made_at timestamptz, expires_at timestamptz)`;
    }),
  );
}

/** The catalog's parts as JSON. */
async function namesOf({ sql, swap }: Replica): Promise<Record<"tables" | "retired" | "aliases", string>> {
  const rowsOf = async (table: string) => {
    const [row] = await sql<{ rows: string }[]>`
      select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${sql.unsafe(`${swap}.${table}`)} as t`;
    return row!.rows;
  };
  return {
    tables: await rowsOf("_tables"),
    retired: await rowsOf("_retired_tables"),
    aliases: await rowsOf("_aliases"),
  };
}
