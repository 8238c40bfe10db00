/** Lists recorded changes of records, of the columns that the agent may read now. */
import { z } from "zod";
import { BasetideError } from "../../../../core/errors";
import type { ReadChanges } from "../../../../core/replica";
import { proxied } from "../../../../core/source";
import { freshness, freshnessLine, MOST_ANSWER_BYTES, whatFits } from "../answer";
import { baseOf } from "../caller";
import { inQueryTurn } from "../query-turns";
import { findReadable, readableOf } from "../readable";
import { baseInput, freshnessShape } from "../shapes";
import { tool } from "../tool";

const CHANGES = 50;
const MOST_CHANGES = 500;
/** Of the values of one change. */
const MOST_BYTES_EACH = 16_000;
/** Of the session that reads them. */
const LIMITS = { timeoutMs: 20_000, bytes: 1_000_000 };

const cells = z.record(z.string(), z.unknown()).nullable();

export const getChangesTool = tool({
  name: "get_changes",
  title: "Get changes",
  description:
    "What changed in a base: created, updated and deleted records with the old and new values of the changed columns, the newest first. Needs the base's setting `history`, and has changes from when it was turned on.",
  input: z.object({
    base: baseInput,
    table: z.string().max(200).optional().describe("SQL name, or name in Airtable; absent: all tables"),
    record: z.string().max(100).optional().describe("Id of a record: rec…"),
    since: z.iso.datetime({ offset: true }).optional().describe("Not before this time: 2026-01-31T00:00:00Z"),
    order: z.enum(["newest", "oldest"]).optional().describe("Which come first; default newest"),
    after: z.string().max(40).optional().describe("`next` of an answer in this order: what follows it"),
    limit: z.number().int().min(1).max(MOST_CHANGES).optional().describe(`Default ${CHANGES}`),
  }),
  output: z.object({
    ...freshnessShape,
    changes: z.array(
      z.object({
        at: z.string().describe("When the copy got it"),
        table: z.string(),
        record: z.string(),
        operation: z.enum(["insert", "update", "delete"]),
        by: z.string().describe("`sync`: it was seen in Airtable; `proxy`: it was written through Basetide"),
        old: cells,
        new: cells,
        is_too_large: z.literal(true).optional().describe("The values are left out: query the record"),
      }),
    ),
    is_cut: z.boolean().describe("There are more changes"),
    next: z
      .string()
      .optional()
      .describe("Pass it as `after`; with the oldest first, later for new changes, too"),
    cut_by: z.enum(["limit", "bytes"]).optional(),
  }),
  isReadOnly: true,
  scope: "agent:read",
  async run(call, { base: named, table, record, since, after, order = "newest", limit = CHANGES }) {
    const base = await baseOf(call, named);
    const facts = freshness(base);
    if (record !== undefined && !proxied.ids.isSurely("record", record))
      throw new BasetideError("invalid_request", `${record} is not the id of a record`);
    if (!base.settings.history)
      throw new BasetideError(
        "conflict",
        "Changes of this base are not recorded. A member who may edit the base turns on its setting “History of changes” (`history`); changes from then on are listed",
      );
    const readable = await readableOf(call, base);
    const tables = table === undefined ? readable.tables : [findReadable(readable.tables, table)];
    const asked = {
      tables,
      recordId: record,
      since,
      after,
      isOldestFirst: order === "oldest",
      limit,
      mostBytes: MOST_ANSWER_BYTES,
      mostBytesEach: MOST_BYTES_EACH,
    };
    const found = await inQueryTurn(call, () => readable.changes(asked, { ...LIMITS, signal: call.signal }));
    if (!found.isRecorded)
      throw new BasetideError(
        "conflict",
        "Changes of this base are not recorded yet. The next sync begins, unless another table is called _sync_history",
      );
    const { changes, lines, next = after, ...cut } = bounded(found, limit);
    call.rows = changes.length;
    const more = cut.is_cut ? ` There are more changes: continue with after: "${next}".` : "";
    return {
      data: { ...facts, changes, ...cut, ...(next === undefined ? {} : { next }) },
      head: `${freshnessLine(facts)}${more}`,
      text: lines.length === 0 ? "No change is recorded." : lines.join("\n"),
    };
  },
});

/** Keeps whole changes, as many as fit. */
function bounded({ changes, isCut }: ReadChanges, limit: number) {
  const kept = whatFits(changes.map(entryOf), MOST_ANSWER_BYTES, ({ data, line }) => [data, [line]]);
  const is_cut = isCut || kept.length < changes.length;
  return {
    changes: kept.map(({ data }) => data),
    lines: kept.map(({ line }) => line),
    next: changes[kept.length - 1]?.place,
    is_cut,
    ...(is_cut ? { cut_by: kept.length < limit ? "bytes" : "limit" } : {}),
  };
}

function entryOf({ isTooLarge, place: _, ...change }: ReadChanges["changes"][number]) {
  const { at, operation, table, record, by, old } = change;
  const values = [old, change.new].map((one) => (one ? JSON.stringify(one) : "")).join(" -> ");
  return {
    data: { ...change, ...(isTooLarge ? { is_too_large: true } : {}) },
    line: `${at} ${operation} ${table} ${record} by ${by} ${isTooLarge ? "(too large to list)" : values}`,
  };
}
