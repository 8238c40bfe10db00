/**
 * How a proxied write asks the source itself: with the base's own key, out of the clients' quota.
 *
 * A repair may have to ask for many records one by one. Those requests wait in line with sync: clients go first, and
 * the sync that shows everybody's changes is not kept waiting until all is repaired.
 */
import { decryptApiKey } from "../control/bases";
import { quotaKeyOf } from "../control/budgets";
import { asBasetideError, BasetideError, isBasetideError } from "../errors";
import type { HeldConnection } from "../http/connections";
import { syncShare } from "../limiter";
import {
  limitsOfKey,
  platformById,
  retryIfStale,
  type SourceConnection,
  type SourceRecord,
  type SourceSchema,
} from "../source";
import type { ConnectedBase } from "./connected-bases";
import type { WritesContext } from "./context";

/** So many records that nobody waits for are asked for by name as a client's would be: the usual repair is of a few. */
const FEW = 5;

export interface SourceReader {
  schema(): Promise<SourceSchema>;
  /**
   * The records as they are now, keyed by field id, and the ids of those that are not there any more.
   *
   * @param choose names the records when the first request is about to be sent; none: nothing is asked
   */
  records(
    tableId: string,
    choose: () => readonly string[],
  ): Promise<{ records: SourceRecord[]; gone: string[] }>;
}

export interface Asking {
  /** Aborts waiting and asking. */
  signal: AbortSignal;
  /** Somebody waits for it. */
  isForClient: boolean;
  /** Whose turn in the clients' quota it takes; those without a name are one. */
  caller?: string;
  /** Called when the source has answered a request with the base's own key. */
  onAnswer?: () => void;
}

/** Every call throws `quota_timeout`, `source_…`, `secret_unreadable`, or `control_unavailable` where nobody waits. */
export function sourceReader(ctx: WritesContext, base: ConnectedBase, asking: Asking): SourceReader {
  const { signal, isForClient, caller = "" } = asking;
  let connection: SourceConnection | undefined;

  function reserve(
    isOneOfMany: boolean,
    { connections }: SourceConnection,
  ): Promise<HeldConnection | undefined> {
    const key = quotaKeyOf(base);
    // They share with sync what that may make, or one of the two would wait for ever.
    // A database of a customer's own has each of the others' writes repaired: that takes nothing from their clients.
    return isOneOfMany || (base.isExternal && !isForClient)
      ? ctx.limiter.acquireSync(key, syncShare(key, base.turbo), signal, { connections })
      : ctx.limiter.acquireClient(key, {
          deadlineMs: ctx.config.upstreamTimeoutMs,
          signal,
          caller,
          connections,
          isOwnKey: true,
        });
  }

  async function ask<T>(call: (connection: SourceConnection) => Promise<T>, isOneOfMany = false): Promise<T> {
    connection ??= platformById(ctx.platforms, base.platform).connect(decryptApiKey(ctx, base));
    const source = connection;
    try {
      const answer = await retryIfStale(async () => {
        using held = await reserve(isOneOfMany, source);
        return await call(held ? source.over(held) : source);
      });
      if (answer !== null) asking.onAnswer?.();
      return answer;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (error.code === "source_rate_limited") {
        const key = quotaKeyOf(base);
        await ctx.limiter.block(key, limitsOfKey(key).penaltyMs, "rate_limited");
      }
      throw error;
    }
  }

  return {
    schema: () => ask((source) => source.getSchema(base.sourceBaseId, signal)),

    async records(tableId, choose) {
      const found = new Map<string, SourceRecord>();
      let ids: readonly string[] | undefined;
      const table = { id: tableId, name: tableId, primaryFieldId: "", fields: [] };
      let offset: string | undefined;
      do {
        const page = await ask(async (source) => {
          ids ??= choose();
          return ids.length > 0 ? source.listByIds(base.sourceBaseId, table, ids, { offset }, signal) : null;
        });
        if (!page) return { records: [], gone: [] };
        if (page.offset !== undefined && page.offset === offset) {
          throw new BasetideError("source_bad_answer", `The list of table ${tableId} does not move on`);
        }
        for (let index = 0; index < page.size; index++) found.set(page.id(index), page.record(index));
        offset = page.offset;
      } while (offset !== undefined);
      // Sources do answer "no records" for a table that has them: who is missing is asked for by name.
      const gone: string[] = [];
      for (const [index, id] of ids!.filter((id) => !found.has(id)).entries()) {
        const get = (source: SourceConnection) =>
          source.getRecord(base.sourceBaseId, tableId, id, signal).catch((error: unknown) => {
            // The key has just listed the table: a record of it that may not be read is gone.
            if (isBasetideError(error, "source_forbidden")) return null;
            throw error;
          });
        const record = await ask(get, !isForClient && index >= FEW);
        if (record) found.set(id, record);
        else gone.push(id);
      }
      return { records: ids!.flatMap((id) => found.get(id) ?? []), gone };
    },
  };
}
