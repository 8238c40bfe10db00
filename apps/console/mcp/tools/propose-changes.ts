/**
 * Proposes changes, which a member approves or rejects. Nothing is changed before, and an agent can approve nothing.
 *
 * What the records have now is stored with the proposal: an operation on a record that changed since is refused.
 */
import { z } from "zod";
import { highestLimits } from "../../../../core/control/agents";
import { type Base, MOST_CHOICES, sourceTables } from "../../../../core/control/bases";
import {
  type CellValues,
  type ChangeOperation,
  COMPUTED_TYPES,
  createChangeSet,
  readRecordsNow,
  requireRoom,
} from "../../../../core/control/change-sets";
import { BasetideError } from "../../../../core/errors";
import { rateLimiterOf } from "../../../../core/limiter";
import type { ColumnSpec, TableSpec } from "../../../../core/replica";
import { proxied } from "../../../../core/source";
import { freshness, freshnessLine, whatFits } from "../answer";
import { baseOf, type ToolCall } from "../caller";
import { readableOf } from "../readable";
import { baseInput, freshnessShape } from "../shapes";
import { tool } from "../tool";

const MOST_PROBLEM_BYTES = 8000;
const MINUTES = { least: 10, usual: 24 * 60, most: 7 * 24 * 60 };

const operation = z.object({
  operation: z.enum(["create", "update", "delete"]),
  table: z.string().max(255).describe("SQL name, or name in Airtable"),
  record: z.string().max(20).optional().describe("The record's id; not for a create"),
  fields: z
    .record(z.string().max(1000), z.unknown())
    .optional()
    .describe(
      'Cells to write by column, in the form of Airtable\'s API: numbers, true, "2026-01-31", a choice\'s name, ["rec…"] for links',
    ),
});
type Asked = z.infer<typeof operation>;

export const proposeChangesTool = tool({
  name: "propose_changes",
  title: "Propose changes",
  description:
    "Proposes changes of records. Nothing is changed until a person approves it at `review_url`: give the person that link. Then get_proposal has the result of each operation. A record that changes in between is left as it is.",
  input: z.object({
    base: baseInput,
    operations: z.array(operation).min(1).max(highestLimits.operations),
    note: z.string().min(1).max(1000).describe("What it is for, for the person who decides"),
    expires_in_minutes: z
      .number()
      .int()
      .min(MINUTES.least)
      .max(MINUTES.most)
      .optional()
      .describe("Default: a day"),
  }),
  output: z.object({
    ...freshnessShape,
    id: z.string().nullable().describe("Null: there are problems, and nothing was proposed"),
    state: z
      .enum(["proposed", "approved"])
      .optional()
      .describe("approved: a rule of the agent allows it, and it is being made"),
    summary: z.array(z.string()),
    problems: z.array(z.object({ operation: z.number(), problem: z.string() })),
    review_url: z.string().nullable(),
    expires_at: z.string().nullable(),
  }),
  isReadOnly: false,
  scope: "agent:propose",
  async run(call, { base: named, operations, note, expires_in_minutes: minutes = MINUTES.usual }) {
    const most = call.agent.limits.operations;
    if (operations.length > most)
      throw new BasetideError("invalid_request", `A proposal of this agent has at most ${most} operations`);
    const base = await baseOf(call, named);
    const facts = freshness(base);
    const { tables } = await readableOf(call, base);
    const { resolved, problems } = resolve(operations, tables, await choicesOf(call, base, tables));
    const { agent, ctx } = call;
    const proposer = { id: agent.id, mostProposals: agent.limits.proposals };
    if (problems.length === 0) await requireRoom(ctx.db, base, proposer, resolved);
    const complete = problems.length > 0 ? [] : await withExpected(call, base, resolved, problems);
    call.rows = operations.length;
    const summary = summaryOf(resolved);
    if (problems.length > 0) {
      const shown = whatFits(problems, MOST_PROBLEM_BYTES, (one) => [one]);
      return {
        data: { ...facts, id: null, summary, problems: shown, review_url: null, expires_at: null },
        head: `Nothing was proposed: ${problems.length} problems. ${freshnessLine(facts)}`,
        text: shown.map(({ operation: at, problem }) => `operations[${at}]: ${problem}`).join("\n"),
      };
    }
    const actor = { kind: "token", name: agent.name } as const;
    const set = await createChangeSet({ ...ctx, actor }, base, {
      operations: complete,
      note,
      isProposal: true,
      agent: proposer,
      expiresInMinutes: minutes,
    });
    // A proxy may have begun with one that a rule has approved.
    const isOpen = set.state === "proposed";
    const review = new URL(`/bases/${base.id}/changes/${set.id}`, ctx.config.consoleUrl).toString();
    return {
      data: {
        ...facts,
        id: set.id,
        state: isOpen ? "proposed" : "approved",
        summary,
        problems: [],
        review_url: review,
        expires_at: isOpen ? set.expiresAt.toISOString() : null,
      },
      head: !isOpen
        ? `Approved as ${set.id} by a rule, and being made: see get_proposal. ${freshnessLine(facts)}`
        : `Proposed as ${set.id}. A person decides at ${review} until ${set.expiresAt.toISOString()}. ${freshnessLine(facts)}`,
      text: summary.join("\n"),
    };
  },
});

interface Problem {
  operation: number;
  problem: string;
}

interface Resolved extends ChangeOperation {
  of: TableSpec;
}

/** The choices of selects, by the field's id; of a field with more than are stored, none. */
type Choices = ReadonlyMap<string, string[]>;

async function choicesOf({ ctx }: ToolCall, base: Base, tables: TableSpec[]): Promise<Choices> {
  const ids = tables.map(({ tableId }) => tableId);
  const shown = [...(await sourceTables(ctx.db, base.id, ids)).values()];
  const fields = shown.flatMap((table) => Object.entries(table.fields));
  return new Map(
    fields.flatMap(([id, { colors = {} }]) => {
      const names = Object.keys(colors);
      return names.length === 0 || names.length >= MOST_CHOICES ? [] : [[id, names]];
    }),
  );
}

/** Finds tables and columns by their names, which an agent may read, and what cannot be written. */
function resolve(
  operations: Asked[],
  tables: TableSpec[],
  choices: Choices,
): { resolved: Resolved[]; problems: Problem[] } {
  const resolved: Resolved[] = [];
  const records = new Map<string, number>();
  const problems: Problem[] = [];
  for (const [at, { operation: kind, table, record, fields }] of operations.entries()) {
    const add = (problem: string) => problems.push({ operation: at, problem });
    const of = tables.find(({ name, sourceName, tableId }) => [name, sourceName, tableId].includes(table));
    if (!of) {
      add(`there is no table ${table} that you may read: see list_tables`);
      continue;
    }
    if (kind === "create" && record !== undefined) add("a create has no `record`");
    if (kind !== "create" && (record === undefined || !proxied.ids.isSurely("record", record)))
      add("`record` must be the id of a record: rec…");
    if (kind === "delete" && fields) add("a delete has no `fields`");
    if (kind !== "delete" && Object.keys(fields ?? {}).length === 0)
      add(`a${kind === "update" ? "n" : ""} ${kind} needs \`fields\``);
    const earlier = record === undefined ? undefined : records.get(record);
    if (earlier !== undefined)
      add(`operations[${earlier}] is of the record ${record}, too: make one operation of them`);
    else if (record !== undefined) records.set(record, at);
    const cells: CellValues = {};
    for (const [key, value] of Object.entries(fields ?? {})) {
      const column = of.columns.find(({ name, sourceName, fieldId }) =>
        [name, sourceName, fieldId].includes(key),
      );
      const problem = column
        ? problemOf(column, value, choices)
        : `there is no column ${key}${nearest(key, of)}`;
      if (problem) add(problem);
      else cells[column!.fieldId] = value;
    }
    const target = { operation: kind, table: of.tableId, of };
    resolved.push({
      ...target,
      ...(record === undefined ? {} : { record }),
      ...(kind === "delete" ? {} : { fields: cells }),
    });
  }
  return { resolved, problems };
}

function problemOf(column: ColumnSpec, value: unknown, known: Choices): string | undefined {
  const { name, sourceType, type, fieldId, filesOf } = column;
  if (filesOf !== undefined || COMPUTED_TYPES.has(sourceType)) return `${name} is computed: Airtable sets it`;
  if (type === "hashed") return `${name} is hashed: its values cannot be read or written here`;
  const choices = column.choices ?? known.get(fieldId);
  if (!/^(single|multiple)_select$/.test(type) || !choices || value === null) return undefined;
  const missing = [value].flat().find((one) => !choices.includes(String(one)));
  return missing === undefined
    ? undefined
    : `${name} has no choice ${JSON.stringify(missing)}. It has: ${choices.slice(0, 20).join(", ")}`;
}

function nearest(asked: string, { columns }: TableSpec): string {
  const start = asked.toLowerCase().slice(0, 3);
  const near = columns.filter((column) => column.name.includes(start)).slice(0, 3);
  const names = (near.length > 0 ? near : columns.slice(0, 5)).map(({ name }) => name);
  return ` that you may read. Did you mean ${names.join(", ")}?`;
}

/** Adds what the records have now. A delete expects all cells that can be compared. */
async function withExpected(
  { ctx }: ToolCall,
  base: Base,
  operations: Resolved[],
  problems: Problem[],
): Promise<ChangeOperation[]> {
  const wanted = new Map<string, string[]>();
  for (const { table, record } of operations) {
    if (record !== undefined) wanted.set(table, [...(wanted.get(table) ?? []), record]);
  }
  const now = await readRecordsNow({ ...ctx, limiter: rateLimiterOf(ctx) }, base, wanted);
  return operations.map(({ of, ...one }, at) => {
    if (one.record === undefined) return one;
    const cells = now.get(one.record);
    if (!cells) {
      problems.push({ operation: at, problem: `there is no record ${one.record} in ${of.name}` });
      return one;
    }
    const compared = one.operation === "update" ? Object.keys(one.fields!) : comparable(of);
    return { ...one, expected: Object.fromEntries(compared.map((key) => [key, cells[key] ?? null])) };
  });
}

function comparable({ columns }: TableSpec): string[] {
  return columns
    .filter(
      ({ type, sourceType, filesOf }) =>
        filesOf === undefined &&
        type !== "attachment" &&
        type !== "hashed" &&
        !COMPUTED_TYPES.has(sourceType),
    )
    .map(({ fieldId }) => fieldId);
}

function summaryOf(operations: Resolved[]): string[] {
  const groups = Map.groupBy(operations, ({ operation: kind, of }) => `${kind} ${of.name}`);
  return [...groups].map(([what, ones]) => `${what}: ${ones.length}`);
}
