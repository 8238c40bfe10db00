/** Finds the parts of a replica that the owner of its database has dropped. */
import type { ServerUrl } from "../external";
import { schemasOf } from "./connection";
import { OWN_RELATIONS } from "./install";
import { withAdmin } from "./provision";

/**
 * @param name of the schema in which the replica is installed
 * @returns the qualified names of our tables and views that are missing
 */
export async function droppedRelations(url: ServerUrl, name: string): Promise<string[]> {
  const { schema, swap } = schemasOf(name);
  const own = OWN_RELATIONS.map((relation) => `${schema}.${relation}`);
  return withAdmin(url, async (sql) => {
    const [known] = await sql`select where to_regclass(${`${swap}._tables`}) is not null`;
    if (!known) return [];
    const rows = await sql<{ name: string }[]>`
      select o.name from unnest(${own}::text[]) as o (name) where to_regclass(o.name) is null
      union all
      select format('%I.%I', ${name}::text, t.name) from ${sql.unsafe(swap)}._tables as t
      where to_regclass(format('%I.%I', ${name}::text, t.name)) is null`;
    return rows.map((row) => row.name);
  });
}
