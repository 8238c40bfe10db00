/** How many connections of a cluster are not yet promised to customers' roles. */
import { ROLE_PATTERN, withAdmin } from "../../replica";

/**
 * Counted on the server itself, over all roles of hosted databases: two clusters may be one server, and another
 * installation may use it too. Connections that the server reserves are the service's.
 *
 * @param overcommit how many times each connection may be promised
 * @throws BasetideError `replica_unavailable`
 */
export async function connectionsLeft(adminUrl: string, overcommit: number): Promise<number> {
  return withAdmin(adminUrl, async (admin) => {
    const [row] = await admin<{ usable: number; promised: number }[]>`
      select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true)::int, 0) as usable,
        (select coalesce(sum(greatest(rolconnlimit, 0)), 0)::int from pg_roles
          where rolname ~ ${ROLE_PATTERN}) as promised`;
    return Math.floor(row!.usable * overcommit) - row!.promised;
  });
}
