/** Finds customers' views that a rebuild of their table will not bring back, as they use code of the customer's own. */
import type { ServerUrl } from "../external";
import { schemasOf } from "./connection";
import { withAdmin } from "./provision";

export interface ForeignView {
  /** Qualified and quoted. */
  view: string;
  owner: string;
  /** What it uses, as Postgres describes it: `type holder, function evil(text)`. */
  code: string;
}

/**
 * The views over the replica's tables that use functions, types or operators which are neither ours nor a superuser's;
 * none where the replica's functions are of a version that does not know.
 *
 * @throws BasetideError `replica_unavailable`
 */
export async function viewsWithForeignCode(url: ServerUrl, schema: string): Promise<ForeignView[]> {
  const { swap } = schemasOf(schema);
  return withAdmin(url, async (sql) => {
    const [known] = await sql`select where to_regprocedure(${`${swap}.foreign_code(oid)`}) is not null`;
    if (!known) return [];
    return sql.unsafe<ForeignView[]>(
      `select distinct c.oid::regclass::text as view, pg_get_userbyid(c.relowner)::text as owner, f.code
       from ${swap}.dependent_views(array(
           select t.oid from pg_class as t where t.relnamespace = to_regnamespace(quote_ident($1)) and t.relkind = 'r')) as d
         join pg_class as c on c.oid = d.view cross join ${swap}.foreign_code(c.oid) as f (code)
       where f.code is not null order by 1`,
      [schema],
    );
  });
}
