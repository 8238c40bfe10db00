/**
 * Reads from the source for a proxied write: with the base's own key, out of the clients' quota.
 *
 * A repair may have to read many records one by one. Those requests wait with sync's: clients go first, and sync, which
 * shows all changes, does not wait until every repair is done.
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

/**
 * The first records that a repair reads one by one have a client's priority, up to this many: most repairs are small.
 */
const FEW = 5;

export interface SourceReader {
  schema(): Promise<SourceSchema>;
  /**
   * Returns the current records, keyed by field id, and the ids of those that no longer exist.
   *
   * @param choose returns the ids when the first request is about to be sent; if there are none, no request is made
   */
  records(
    tableId: string,
    choose: () => readonly string[],
  ): Promise<{ records: SourceRecord[]; gone: string[] }>;
}

export interface Asking {
  /** Aborts waiting and requests. */
  signal: AbortSignal;
  /** A client waits for the result. */
  isForClient: boolean;
  /** The caller in whose share of the clients' quota the requests wait; requests without a caller share one. */
  caller?: string;
  /** Called when the source has answered a request with the base's own key. */
  onAnswer?: () => void;
}

/** Every call throws `quota_timeout`, `source_…`, `secret_unreadable`, or `control_unavailable` if no client waits. */
export function sourceReader(ctx: WritesContext, base: ConnectedBase, asking: Asking): SourceReader {
  const { signal, isForClient, caller = "" } = asking;
  let connection: SourceConnection | undefined;

  function reserve(
    isOneOfMany: boolean,
    { connections }: SourceConnection,
  ): Promise<HeldConnection | undefined> {
    const key = quotaKeyOf(base);
    // A long series of reads uses sync's part of the quota, or one of the two would wait forever. For a database on a
    // customer's own server every write of other accounts is repaired: such repairs take nothing from the other
    // accounts' clients.
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
      // The source sometimes answers "no records" for a table that has them: missing records are requested one by one.
      const gone: string[] = [];
      for (const [index, id] of ids!.filter((id) => !found.has(id)).entries()) {
        const get = (source: SourceConnection) =>
          source.getRecord(base.sourceBaseId, tableId, id, signal).catch((error: unknown) => {
            // The key has just listed the table: a record of it that it may not read no longer exists.
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
