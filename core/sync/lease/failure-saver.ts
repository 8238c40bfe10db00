/** Saves with the base which tables fail, and why its schema cannot be read, whenever that changes. */
import { wait } from "../../async";
import { type Base, saveFailingTables, saveSchemaError } from "../../control/bases";
import type { BaseCache } from "../state";
import type { SyncContext } from "./lease";

const RETRY_MS = 5000;

/**
 * Saves what differs from `base`, and from now on every change.
 *
 * @returns to be called when the schema can no longer be read, or can be read again
 */
export function saveFailures(
  { db, log }: Pick<SyncContext, "db" | "log">,
  base: Base,
  cache: BaseCache,
  stop: AbortSignal,
): () => void {
  const tables = latestSaver(() => saveFailingTables(db, base.id, cache.failing.list()));
  const schema = latestSaver(() => saveSchemaError(db, base.id, cache.schemaError));
  cache.failing.onChange = tables;
  if (!Bun.deepEquals(cache.failing.list(), base.failingTables)) tables();
  if (!Bun.deepEquals(cache.schemaError, base.schemaError)) schema();
  return schema;

  /** Returns a function that runs `save` soon, once more if it is running, and again until it succeeds. */
  function latestSaver(save: () => Promise<void>): () => void {
    let isWanted = false;
    let isSaving = false;
    const run = async () => {
      isSaving = true;
      while (isWanted && !stop.aborted) {
        isWanted = false;
        try {
          await save();
        } catch (error) {
          log.debug({ error }, "saving what fails was not possible; retrying");
          isWanted = true;
          await wait(RETRY_MS, stop).catch(() => {});
        }
      }
      isSaving = false;
    };
    return () => {
      isWanted = true;
      if (!isSaving) void run();
    };
  }
}
