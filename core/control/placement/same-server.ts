/**
 * Checks whether a cluster is the server that holds the control plane. The servers themselves are asked, because
 * two addresses may be one server, and one address may be a pooler in front of several.
 */
import { randomBytes } from "node:crypto";
import type { Db } from "../../context";
import { withAdmin } from "../../replica";

/**
 * Whether the cluster is on the control plane's server, where every role may connect to the control plane's database.
 *
 * @throws errors of the connection to the cluster
 */
export async function sharesOpenControl(db: Db, adminUrl: string): Promise<boolean> {
  const [row] = await db<{ isOpen: boolean }[]>`
    select has_database_privilege('public', current_database(), 'connect') as "isOpen"`;
  return row!.isOpen && (await isControlServer(db, adminUrl));
}

/**
 * Takes an advisory lock with a random key in the control plane, and looks for it in the cluster. Every role may
 * read `pg_locks`, which shows all databases of a server, so this needs no rights and no settings.
 *
 * @throws errors of the connection to the cluster: a caller that gets no answer must not go on
 */
export async function isControlServer(db: Db, adminUrl: string): Promise<boolean> {
  const [high, low] = [randomBytes(4).readInt32BE(), randomBytes(4).readInt32BE()];
  // The lock belongs to the transaction: it works through poolers too, and is always released.
  return db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${high}::int, ${low}::int)`;
    const seen = await withAdmin(
      adminUrl,
      (cluster) => cluster`
        select from pg_locks
        where locktype = 'advisory' and granted and objsubid = 2
          and classid = (${high}::bigint & 4294967295)::oid and objid = (${low}::bigint & 4294967295)::oid`,
    );
    return seen.length > 0;
  });
}
