/** The columns of a base's tables, as its replica has them now. */
import type { Context } from "../context";
import { loadCatalog, openReplica, type TableSpec } from "../replica";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

/**
 * Every live table of the base. For the pages that ask for it: the control plane does not keep columns.
 *
 * @throws BasetideError `replica_unavailable`
 */
export async function replicaTables(
  ctx: Pick<Context, "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
): Promise<TableSpec[]> {
  const replica = openReplica(await replicaTarget(ctx, base));
  try {
    return [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
  } finally {
    await replica.close();
  }
}
