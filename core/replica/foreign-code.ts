/** Finds customers' views that a rebuild of their table will not restore because they use the customer's own code. */
import type { ServerUrl } from "../external";
import { schemasOf } from "./connection";
import { withAdmin } from "./provision";

interface ForeignView {
  /** Qualified and quoted. */
  view: string;
  owner: string;
  /** The code that the view uses, as Postgres describes it: `type holder, function evil(text)`. */
  code: string;
}

/**
 * Returns the views over the replica's tables that use functions, types or operators which belong neither to us nor to
 * a superuser.
 *
 * @throws BasetideError `replica_unavailable`
 */
export async function viewsWithForeignCode(url: ServerUrl, schema: string): Promise<ForeignView[]> {
  const { swap } = schemasOf(schema);
  return withAdmin(url, async (sql) => {
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
