/** Reads from the catalog what a move must know of the tables of a control plane. */
import type { Db } from "../../context";
import { conflict } from "../../errors";
import { belongs, type MovedTable, parentsFirst } from "./tables";

/** The tables whose rows move, parents first. @throws BasetideError `internal` for one of which that is not decided */
export async function movedTables(db: Db): Promise<MovedTable[]> {
  const moved = parentsFirst(await tableShapes(db));
  const byName = new Map(moved.map((shape) => [shape.name, shape]));
  for (const { name } of moved) belongs(name, byName);
  return moved;
}

/** All tables of the control plane. */
export async function tableShapes(db: Db): Promise<MovedTable[]> {
  return db<MovedTable[]>`
    select c.relname as name,
      (select array_agg(a.attname::text order by a.attnum) from pg_attribute as a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
      (select a.attname::text from pg_attribute as a where a.attrelid = c.oid and a.attidentity <> '') as identity,
      coalesce((
        select jsonb_agg(jsonb_build_object(
          'parent', p.relname,
          'columns', (select jsonb_agg(a.attname order by k.n) from unnest(f.conkey) with ordinality as k(num, n)
            join pg_attribute as a on a.attrelid = f.conrelid and a.attnum = k.num),
          'parentColumns', (select jsonb_agg(a.attname order by k.n) from unnest(f.confkey) with ordinality as k(num, n)
            join pg_attribute as a on a.attrelid = f.confrelid and a.attnum = k.num)) order by f.conname)
        from pg_constraint as f join pg_class as p on p.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f'), '[]') as keys
    from pg_class as c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_migrations'
    order by 1`;
}

/** @throws BasetideError `conflict` if the tables differ: the control planes run different versions */
export function requireSameTables(source: MovedTable[], target: MovedTable[]): void {
  const text = (shapes: MovedTable[]) =>
    shapes.map(({ name, columns }) => `${name}(${columns.toSorted().join()})`);
  const known = new Set(text(target));
  const other = text(source).find((table) => !known.has(table));
  if (other === undefined) return;
  throw conflict(
    `The table ${other.split("(")[0]} differs between the control planes. Update both to the same version of Basetide first`,
  );
}
