/** `basetide proposals …`: changes that agents propose, and the decision about them. */
import { Command } from "commander";
import { formatFacts, formatTable, printableValue, printResult } from "../../core/terminal";
import { type ApiSchemas, dataOf } from "./client";
import { type Common, command } from "./commands";
import { CliError } from "./failure";
import { openClient } from "./session";

type ChangeSet = ApiSchemas["ChangeSet"];
type Proposal = ApiSchemas["Proposal"];

const PROPOSAL = ["<proposal>", "its id: chs_…"] as const;

interface ApproveOptions extends Common {
  only?: string;
  takeChanged?: boolean;
}

export function addProposalCommands(program: Command): void {
  const proposals = new Command("proposals").description("changes that agents propose");
  program.addCommand(proposals);
  proposals.addCommand(
    command("list", "first those that wait, then the newest")
      .option("--waiting", "only those that wait for a decision")
      .action(async ({ json = false, waiting }: Common & { waiting?: boolean }) => {
        const query = waiting ? { state: "proposed" as const } : {};
        const all = await dataOf(openClient().GET("/api/v1/proposals", { params: { query } }));
        printResult(all, json, () => formatTable(all.map(proposalRow), "No proposals"));
      }),
  );
  proposals.addCommand(
    command("show", "what it would change, compared with Airtable as it is now, or what became of it")
      .argument(...PROPOSAL)
      .action(async (id: string, { json = false }: Common) => {
        printResult(await read(id), json, proposalText);
      }),
  );
  proposals.addCommand(
    command("approve", "make the changes in Airtable; records that changed since are left as they are")
      .argument(...PROPOSAL)
      .option("--only <positions>", "only these operations, such as 0,2,5")
      .option("--take-changed", "also those on records that have changed since")
      .action(async (id: string, { json = false, only, takeChanged }: ApproveOptions) => {
        const seen = takeChanged ? (await read(id)).seen : null;
        const body = {
          ...(only === undefined ? {} : { operations: positionsIn(only) }),
          ...(seen === null ? {} : { seen }),
        };
        const params = { path: { id } };
        const set = await dataOf(openClient().POST("/api/v1/proposals/{id}/approve", { params, body }));
        printResult(
          set,
          json,
          () => `Approved. The changes are being made: \`basetide proposals show ${id}\``,
        );
      }),
  );
  proposals.addCommand(
    command("reject", "change nothing; the agent can read the reason")
      .argument(...PROPOSAL)
      .option("--reason <text>", "why")
      .action(async (id: string, { json = false, reason }: Common & { reason?: string }) => {
        const body = reason === undefined ? {} : { reason };
        const params = { path: { id } };
        const set = await dataOf(openClient().POST("/api/v1/proposals/{id}/reject", { params, body }));
        printResult(set, json, () => "Rejected. Nothing was changed.");
      }),
  );
  proposals.addCommand(
    command("undo", "give the records back what they had")
      .argument(...PROPOSAL)
      .action(async (id: string, { json = false }: Common) => {
        const params = { path: { id } };
        const set = await dataOf(openClient().POST("/api/v1/proposals/{id}/undo", { params }));
        printResult(set, json, () => `The change set ${set.id} undoes it`);
      }),
  );
}

const read = (id: string): Promise<Proposal> =>
  dataOf(openClient().GET("/api/v1/proposals/{id}", { params: { path: { id } } }));

function positionsIn(text: string): number[] {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.some((part) => !/^\d{1,4}$/.test(part)))
    throw new CliError("usage", "--only takes positions as `proposals show` prints them, such as 0,2,5");
  return parts.map(Number);
}

function proposalRow({ id, state, note, created_by, created_at, expires_at, counts }: ChangeSet) {
  const operations = Object.values(counts).reduce((sum, count) => sum + (count ?? 0), 0);
  return { id, state, operations, by: created_by, created_at, expires_at, note };
}

function proposalText({ proposal, operations, review_problem }: Proposal): string {
  const { id, state, note, created_by, created_at, expires_at, reason, problem } = proposal;
  const facts = { id, state, note, by: created_by, created_at, expires_at, reason, problem, review_problem };
  const told = Object.fromEntries(
    Object.entries(facts).filter(([, value]) => value !== "" && value !== null),
  );
  return [formatFacts(told), ...operations.map(operationText)].join("\n");
}

function operationText(one: Proposal["operations"][number]): string {
  const { position, operation, table, record, title, state, error, is_stale, is_gone, cells } = one;
  const marks = [
    ...(is_gone ? ["THE RECORD IS GONE"] : []),
    ...(is_stale ? ["CHANGED SINCE"] : []),
    ...(state === "waiting" ? [] : [state]),
    ...(error ? [printableValue(error)] : []),
  ];
  const what = printableValue(title ?? record ?? "a new record");
  const head = `${position}  ${operation} ${what} in ${printableValue(table)}${marks.length > 0 ? `  [${marks.join("; ")}]` : ""}`;
  const lines = cells.map((cell) => {
    const before = "now" in cell ? cell.now : cell.was;
    const from = operation === "create" ? "" : cellText(before);
    const to = "proposed" in cell ? `${from ? " → " : ""}${cellText(cell.proposed)}` : "";
    const was = "now" in cell && "was" in cell ? ` (was ${cellText(cell.was)} when proposed)` : "";
    return `     ${printableValue(cell.field)}: ${from}${to}${was}`;
  });
  return [head, ...lines].join("\n");
}

/** In full: a text that is cut could carry data out unseen. In one line: none can imitate another. */
function cellText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "(empty)";
  return printableValue(typeof value === "string" ? value : JSON.stringify(value));
}
