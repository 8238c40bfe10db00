/**
 * Keeps a spare database on each cluster that accepts databases, so that connecting a base does not wait for the creation of
 * one. One process of the installation prepares them at a time.
 */
import { repeat, withTimeout } from "../../async";
import type { Context } from "../../context";
import { asOnly } from "../../postgres";
import type { Running } from "../../process";
import { prepareSpare } from "../../replica";
import { clusterAdminUrl, installationId, listClusters } from "./clusters";

/** How often another process may have used one, or a cluster may have been added. */
const EVERY_MS = 60_000;
/**
 * When the next one is prepared after one was claimed: the request that claimed it is answered, and its first sync has
 * started, without the server's work for another. A stopping process waits for one that is being prepared for as long at most:
 * what is incomplete is dropped later.
 */
const LATER_MS = 5000;

type SpareContext = Pick<Context, "db" | "secrets" | "log">;

export interface SpareKeeper extends Running {
  /** To be called when one was claimed: soon prepares another. */
  used(): void;
}

/** Prepares spare databases in the background, from now on. */
export function startSpares(ctx: SpareContext): SpareKeeper {
  const preparing = repeat(
    EVERY_MS,
    () => asOnly(ctx.db, "prepare spare databases", () => prepareSpares(ctx)),
    (error) => ctx.log.warn({ error }, "preparing spare databases failed"),
  );
  void preparing.now();
  return {
    used: () => void setTimeout(() => void preparing.now(), LATER_MS).unref(),
    stop: () => withTimeout(LATER_MS, () => {}, preparing.stop()),
  };
}

async function prepareSpares(ctx: SpareContext): Promise<void> {
  const installation = await installationId(ctx.db);
  for (const { id, name, state } of await listClusters(ctx.db)) {
    if (state !== "active") continue;
    try {
      await prepareSpare(await clusterAdminUrl(ctx, id), installation);
    } catch (error) {
      ctx.log.warn({ error, cluster: name }, "preparing a spare database failed; trying again in a minute");
    }
  }
}
