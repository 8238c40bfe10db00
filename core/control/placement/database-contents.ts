/** What the databases of an account hold, so that people recognize them: their names are random. */
import type { Db } from "../../context";

export interface DatabaseContents {
  id: string;
  name: string;
  /** In order of their connection. */
  bases: { name: string; schema: string; tables: number }[];
}

/** The account's databases, in order of creation. */
export async function databaseContents(db: Db, accountId: string): Promise<DatabaseContents[]> {
  return db<DatabaseContents[]>`
    select d.id, d.name, coalesce(json_agg(
      json_build_object('name', b.name, 'schema', b.schema_name, 'tables', jsonb_array_length(b.tables))
      order by b.created_at
    ) filter (where b.id is not null), '[]') as bases
    from databases as d left join bases as b on b.database_id = d.id
    where d.account_id = ${accountId}
    group by d.id
    order by d.created_at, d.id`;
}
