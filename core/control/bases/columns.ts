/** The columns of a base's tables, as its replica has them now. */
import type { Context } from "../../context";
import { type LinkView, loadCatalog, loadLinkViews, openReplica, type TableSpec } from "../../replica";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

interface ReplicaShape {
  /** All live tables, by name. */
  tables: TableSpec[];
  linkViews: LinkView[];
}

/**
 * Reads the columns from the replica, because the control plane does not store them.
 *
 * @throws BasetideError `replica_unavailable`
 */
export async function replicaShape(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
): Promise<ReplicaShape> {
  const replica = openReplica(await replicaTarget(ctx, base));
  try {
    const tables = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
    tables.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { tables, linkViews: await loadLinkViews(replica) };
  } finally {
    await replica.close();
  }
}
