/** Gives a base's database the tables of a source, as a sync does, without records. */
import { getBase, type ManagementContext, replicaTarget } from "../../core/control/bases";
import {
  applySettings,
  changeShape,
  claimEpoch,
  loadCatalog,
  openReplica,
  planSchema,
  startBuild,
} from "../../core/replica";
import type { SourceTable } from "../../core/source";
import { putBuild } from "./put-build";

export async function syncTables(
  ctx: ManagementContext,
  baseId: string,
  tables: SourceTable[],
): Promise<void> {
  const base = await getBase(ctx.db, baseId);
  const replica = openReplica(await replicaTarget(ctx, base));
  try {
    const epoch = await claimEpoch(replica);
    const { aliasDays } = base.settings;
    await applySettings(replica, epoch, { history: false, notify: false, aliasDays });
    const catalog = await loadCatalog(replica);
    const plan = planSchema(catalog, { tables }, base.settings);
    await changeShape(replica, epoch, catalog, plan);
    for (const spec of plan.rebuild) {
      const build = await startBuild(replica, epoch, spec);
      await putBuild({ replica, epoch }, build, catalog.get(spec.tableId));
    }
  } finally {
    await replica.close();
  }
}
