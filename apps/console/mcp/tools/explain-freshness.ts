/** Explains how fresh a base's copy is, and whether a record is in it. */
import { z } from "zod";
import { statusOf } from "../../../../core/control/status";
import { BasetideError } from "../../../../core/errors";
import { readableName } from "../../../../core/exports";
import { serverNow } from "../../../../core/postgres";
import { proxied } from "../../../../core/source";
import { freshness, freshnessLine } from "../answer";
import { baseOf } from "../caller";
import { inQueryTurn } from "../query-turns";
import { readableOf } from "../readable";
import { failureOf, runSql } from "../run-sql";
import { baseInput, freshnessShape } from "../shapes";
import { tool } from "../tool";

const LIMITS = { timeoutMs: 10_000, bytes: 100_000, rows: 1 };

export const explainFreshnessTool = tool({
  name: "explain_freshness",
  title: "Explain freshness",
  description:
    "How fresh the copy of a base is, what it waits for, and whether a record has arrived. Use it if a record or a change seems to be missing.",
  input: z.object({
    base: baseInput,
    record: z.string().max(100).optional().describe("Id of a record: rec…"),
  }),
  output: z.object({
    ...freshnessShape,
    status: z.string(),
    failing_tables: z.array(z.string()),
    record: z.object({ id: z.string(), table: z.string().nullable(), why: z.string() }).optional(),
  }),
  isReadOnly: true,
  scope: "agent:read",
  async run(call, { base: named, record }) {
    const base = await baseOf(call, named);
    const facts = freshness(base);
    const { headline, next } = statusOf(base, serverNow(base));
    const readable = await readableOf(call, base);
    const visible = new Set(readable.tables.map(({ tableId }) => tableId));
    const failing = base.failingTables
      .filter(({ table_id }) => visible.has(table_id))
      .map(({ name }) => name);
    let found: { id: string; table: string | null; why: string } | undefined;
    if (record !== undefined) {
      if (!proxied.ids.isSurely("record", record))
        throw new BasetideError("invalid_request", `${record} is not the id of a record`);
      // Its form is checked above: it needs no escaping.
      const parts = readable.tables.map(
        ({ name }) =>
          `select '${name.replaceAll("'", "''")}' where exists (select from ${readableName(name)} where id = '${record}')`,
      );
      const sql = parts.length === 0 ? "select null where false" : parts.join(" union all ");
      const limits = { ...LIMITS, signal: call.signal };
      const { results, failure } = await inQueryTurn(call, () => runSql(readable, sql, limits));
      if (failure) throw failureOf(failure);
      const table = results[0]?.rows[0]?.[0] ?? null;
      found = { id: record, table, why: whyOf(table, facts) };
    }
    const status = [headline, next].filter((text) => text !== "").join(" ");
    const lines = [
      status,
      ...(failing.length > 0 ? [`Tables that cannot be read at the moment: ${failing.join(", ")}`] : []),
      ...(found ? [`${found.id}: ${found.why}`] : []),
    ];
    return {
      data: { ...facts, status, failing_tables: failing, ...(found ? { record: found } : {}) },
      head: freshnessLine(facts),
      text: lines.join("\n"),
    };
  },
});

function whyOf(table: string | null, { as_of, is_complete }: ReturnType<typeof freshness>): string {
  if (table !== null) return `It is in ${table}.`;
  if (as_of === null) return "The first sync has not ended: it may not be copied yet.";
  const when = is_complete
    ? `It did not exist at ${as_of}`
    : `It may be waiting (see reason), it did not exist at ${as_of}`;
  return `${when}, is in a table that you may not read, or is not selected for copying.`;
}
