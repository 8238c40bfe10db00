/**
 * Reads from the source for a proxied write: with the base's own key, out of the clients' quota, and without what the
 * base does not copy.
 *
 * A repair may have to read many records one by one. Those requests wait with sync's: clients go first, and sync, which
 * shows all changes, does not wait until every repair is done.
 */
import { connectOwn } from "../control/bases";
import { quotaKeyOf } from "../control/budgets";
import { BasetideError } from "../errors";
import { MeteredSource, syncShare } from "../limiter";
import { platformById, type SourceConnection, type SourceRecord, type SourceSchema } from "../source";
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
  const { signal, isForClient, caller = "", onAnswer } = asking;
  const { sourceBaseId } = base;
  const quotaKey = quotaKeyOf(base);
  let connection: SourceConnection | undefined;

  /** Returns the source as one request asks it. The key is decrypted for the first one: most writes make none. */
  function source(isOneOfMany = false): MeteredSource {
    connection ??= connectOwn(ctx, platformById(ctx.platforms, base.platform), base);
    // A long series of reads uses sync's part of the quota, or one of the two would wait forever. For a database on a
    // customer's own server every write of other accounts is repaired: such repairs take nothing from the other
    // accounts' clients.
    const isSync = isOneOfMany || (base.isExternal && !isForClient);
    const deadlineMs = ctx.config.upstreamTimeoutMs;
    return new MeteredSource({
      connection,
      sourceBaseId,
      limiter: ctx.limiter,
      quotaKey,
      queue: isSync
        ? { priority: "sync", share: () => syncShare(quotaKey, base.turbo), signal }
        : { priority: "client", deadlineMs, signal, caller, isOwnKey: true, shownAs: "own" },
      signal,
      onAnswer: (answer) => {
        if (answer !== null) onAnswer?.();
      },
    });
  }

  return {
    schema: async () => source().send((at) => at.getSchema(sourceBaseId, signal)),
    async records(tableId, choose) {
      let asked: readonly string[] = [];
      const read = await source().readRecords(
        tableId,
        () => {
          asked = choose();
          return asked;
        },
        (index) => source(!isForClient && index >= FEW),
      );
      // SQL cannot show a record that cannot be read.
      if (read.records.length + read.gone.length < asked.length)
        throw new BasetideError("source_bad_answer", "Airtable returned records that cannot be read");
      return read;
    },
  };
}
