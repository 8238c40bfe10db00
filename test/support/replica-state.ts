/** The state of a replica by the source's ids, so that two replicas with different histories can be compared. */
import { loadCatalog } from "../../core/replica";
import { dumpTable, type TestReplica } from "./replica";

export interface ColumnState {
  type: string;
  comment: string | null;
  isNullable: boolean;
}

export interface TableState {
  comment: string | null;
  /** By field id; `id` and `created_time` under their own names. */
  columns: Record<string, ColumnState>;
  /** By field id, likewise. */
  rows: Record<string, unknown>[];
  /** `reader=r` and the like. */
  grants: string[];
  key: string;
  issues: { recordId: string; fieldId: string; value: string; reason: string }[];
}

export interface ReplicaState {
  /** By table id. */
  tables: Record<string, TableState>;
  /** SQL names by source id. They depend on the history. */
  names: Record<string, string>;
  /** Tables in `public` that the catalog does not know, and in `public_swap` that belong to no rebuild. */
  strays: string[];
}

export async function replicaState({ replica, role }: TestReplica): Promise<ReplicaState> {
  const { sql } = replica;
  const catalog = await loadCatalog(replica);
  const state: ReplicaState = { tables: {}, names: {}, strays: [] };
  for (const [tableId, { spec }] of catalog) {
    const oid = `public."${spec.name}"`;
    const ids = new Map(spec.columns.map((column) => [column.name, column.fieldId]));
    const idOf = (name: string) => ids.get(name) ?? name;
    const columns = await sql<(ColumnState & { name: string })[]>`
      select attname as name, format_type(atttypid, atttypmod) as type, not attnotnull as "isNullable",
        col_description(attrelid, attnum) as comment
      from pg_attribute where attrelid = ${oid}::regclass and attnum > 0 and not attisdropped`;
    const [table] = await sql<{ comment: string | null; grants: string[]; key: string }[]>`
      select obj_description(c.oid) as comment,
        array(select (case a.grantee when c.relowner then 'owner' else a.grantee::regrole::text end) || '=' ||
          string_agg(a.privilege_type, ',' order by a.privilege_type)
          from aclexplode(c.relacl) as a group by a.grantee order by 1) as grants,
        (select pg_get_constraintdef(k.oid) from pg_constraint as k where k.conrelid = c.oid and k.contype = 'p') as key
      from pg_class as c where c.oid = ${oid}::regclass`;
    const issues = await sql<{ record_id: string; field: string; value: string; reason: string }[]>`
      select record_id, field, value, reason from public._sync_issues where table_name = ${spec.name}
      order by record_id, field`;
    const rows = (await dumpTable(sql, spec.name)) as Record<string, unknown>[];
    state.tables[tableId] = {
      comment: table!.comment,
      columns: Object.fromEntries(columns.map(({ name, ...column }) => [idOf(name), column])),
      rows: rows.map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, cell]) => [idOf(name), cell])),
      ),
      grants: table!.grants.map((grant) => grant.replace(role, "reader")),
      key: table!.key,
      issues: issues
        .map(({ record_id, field, value, reason }) => ({
          recordId: record_id,
          fieldId: idOf(field),
          value,
          reason,
        }))
        .sort((a, b) => (a.recordId + a.fieldId < b.recordId + b.fieldId ? -1 : 1)),
    };
    state.names[tableId] = spec.name;
    for (const { fieldId, name } of spec.columns) state.names[`${tableId} ${fieldId}`] = name;
  }
  const known = new Set([...catalog.values()].map(({ spec }) => spec.name));
  const tables = await sql<{ schema: string; name: string }[]>`
    select relnamespace::regnamespace::text as schema, relname as name from pg_class
    where relkind = 'r' and relnamespace::regnamespace::text in ('public', 'public_swap') and relname !~ '^_'`;
  state.strays = tables
    .filter(({ schema, name }) => schema === "public_swap" || !known.has(name))
    .map(({ schema, name }) => `${schema}.${name}`);
  return state;
}
