/** How a proxied write asks the source itself: with the base's own key, out of the clients' quota. */
import { openApiKey } from "../control";
import { asBasetideError, BasetideError } from "../errors";
import { platformById } from "../source";
import type { SourceConnection, SourceRecord, SourceSchema } from "../source/types";
import { quotaKeyOf } from "../sync";
import type { ConnectedBase } from "./connected-bases";
import type { WritesContext } from "./context";

/** The source's own penalty after a 429, ms. */
const RATE_LIMIT_PAUSE_MS = 30_000;

export interface SourceReader {
  schema(): Promise<SourceSchema>;
  /** The records as they are now, keyed by field id, and the ids of those that are not there any more. */
  records(tableId: string, ids: readonly string[]): Promise<{ records: SourceRecord[]; gone: string[] }>;
}

/** @param signal aborts waiting and asking. Every call throws `quota_timeout`, `source_…` or `secret_unreadable` */
export function sourceReader(ctx: WritesContext, base: ConnectedBase, signal: AbortSignal): SourceReader {
  let connection: Promise<SourceConnection> | undefined;

  async function ask<T>(call: (connection: SourceConnection) => Promise<T>): Promise<T> {
    connection ??= openApiKey(ctx, base).then((key) =>
      platformById(ctx.platforms, base.platform).connect(key),
    );
    const opened = await connection;
    await ctx.ledger.takeClient(quotaKeyOf(base), { deadlineMs: ctx.config.upstreamTimeoutMs, signal });
    try {
      return await call(opened);
    } catch (caught) {
      const error = asBasetideError(caught);
      if (error.code === "source_rate_limited") {
        await ctx.ledger.block(quotaKeyOf(base), RATE_LIMIT_PAUSE_MS, "rate_limited");
      }
      throw error;
    }
  }

  return {
    schema: () => ask((source) => source.getSchema(base.sourceBaseId, signal)),

    async records(tableId, ids) {
      const found = new Map<string, SourceRecord>();
      const table = { id: tableId, name: tableId, primaryFieldId: "", fields: [] };
      let offset: string | undefined;
      do {
        const page = await ask((source) =>
          source.listByIds(base.sourceBaseId, table, ids, { offset }, signal),
        );
        if (page.offset !== undefined && page.offset === offset) {
          throw new BasetideError("source_bad_answer", `The list of table ${tableId} does not move on`);
        }
        for (let index = 0; index < page.size; index++) found.set(page.id(index), page.record(index));
        offset = page.offset;
      } while (offset !== undefined);
      // Sources do answer "no records" for a table that has them: who is missing is asked for by name.
      const gone: string[] = [];
      for (const id of ids.filter((id) => !found.has(id))) {
        const record = await ask((source) => source.getRecord(base.sourceBaseId, tableId, id, signal));
        if (record) found.set(id, record);
        else gone.push(id);
      }
      return { records: ids.flatMap((id) => found.get(id) ?? []), gone };
    },
  };
}
