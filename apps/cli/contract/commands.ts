/** `basetide pull`, `diff`, `apply` and `check`: the account as a file. */
import { existsSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import { confirmed, printable, printResult } from "../../../core/terminal";
import { type ApiClient, ApiFailure } from "../client";
import { type Common, command } from "../commands";
import { CliError, EXIT } from "../failure";
import { openClient } from "../session";
import { annotate } from "./annotate";
import { applyStep, resolveSecrets, resolveSelections } from "./apply";
import { breakingChanges, latestChanges } from "./breaking";
import { readContract, writeContract } from "./file";
import { planContract, unlisted } from "./plan";
import { pulled } from "./pull";
import { readAccountState } from "./state";
import type { PlanStep } from "./step";

const DEFAULT_FILE = "basetide.yaml";

interface FileOptions extends Common {
  file: string;
  prune?: boolean;
  yes?: boolean;
}

export function addContractCommands(program: Command): void {
  const withFile = (name: string, about: string) =>
    command(name, about).option("-f, --file <path>", "the file", DEFAULT_FILE);
  program.addCommand(
    withFile("pull", "write the account into the file; its comments and secrets stay").action(pull),
  );
  program.addCommand(
    withFile("diff", "show what differs; exits with 2 if something does")
      .option("--prune", "also what the file does not list")
      .action(diff),
  );
  program.addCommand(
    withFile("apply", "make the account what the file says")
      .option("--prune", "delete what the file does not list")
      .option("--yes", "do not ask before what rebuilds or deletes")
      .action(apply),
  );
  program.addCommand(
    withFile("check", "for CI: exits with 2 if Airtable or the file has changed in a breaking way").action(
      check,
    ),
  );
}

async function pull({ file, json = false }: FileOptions): Promise<void> {
  const client = openClient();
  const before = existsSync(file) ? readContract(file) : undefined;
  const state = await readAccountState(client, before?.contract);
  const text = pulled(state, await latestChanges(client, state), before);
  const isChanged = !before || readFileSync(file, "utf8") !== text;
  if (isChanged) writeContract(file, text);
  printResult({ file, changed: isChanged, bases: state.bases.length }, json, () =>
    isChanged ? `Wrote ${file}` : `${file}: no difference`,
  );
}

async function diff({ file, prune = false, json = false }: FileOptions): Promise<void> {
  const parsed = readContract(file);
  const state = await readAccountState(openClient(), parsed.contract);
  const steps = planContract(parsed, state, { prune });
  printResult(steps.map(stepJson), json, () =>
    planText(steps, prune ? [] : unlisted(parsed.contract, state)),
  );
  if (steps.length > 0) process.exitCode = EXIT.different;
}

async function apply({ file, prune = false, yes = false, json = false }: FileOptions): Promise<void> {
  const parsed = readContract(file);
  const client = openClient();
  const planned = planContract(parsed, await readAccountState(client, parsed.contract), { prune });
  const secretOf = resolveSecrets(parsed, planned, process.env);
  const steps = await resolveSelections(client, parsed, planned, secretOf);
  console.error(printable(planText(steps, [])));
  const grave = steps.filter(({ isGrave }) => isGrave).length;
  if (grave > 0 && !yes && !(await confirmed(`${grave} of these rebuild tables or delete data. Continue?`)))
    throw new CliError("not_confirmed", "Nothing was changed. Confirm what rebuilds or deletes with --yes.");
  for (const [index, step] of steps.entries()) {
    const secret = await named(applyStep(client, step, secretOf), file, steps, index);
    // Only on a terminal: the output of a build is kept, and many can read it.
    if (secret && process.stderr.isTTY) console.error(`${step.what} signs with ${secret}, shown only once`);
  }
  printResult({ applied: steps.map(stepJson) }, json, () =>
    steps.length > 0 ? `Applied ${steps.length}` : "Nothing to do",
  );
}

/** Adds to an error of the service which step it stopped, and how many are done. */
async function named<Value>(
  applied: Promise<Value>,
  file: string,
  steps: PlanStep[],
  index: number,
): Promise<Value> {
  try {
    return await applied;
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    const { line, what } = steps[index]!;
    const done = `${index} of ${steps.length} steps are applied`;
    const message = `${file}:${line}: ${what}: ${error.message} (${done})`;
    throw new ApiFailure(error.code, message, error.status, error.requestId);
  }
}

/** Reports everything that is found, with the line that it concerns. */
async function check({ file, json = false }: FileOptions): Promise<void> {
  const parsed = readContract(file);
  const client: ApiClient = openClient();
  const state = await readAccountState(client, parsed.contract);
  const rebuilt = planContract(parsed, state, { prune: false })
    .filter(({ isGrave }) => isGrave)
    .map(({ line, what, details }) => ({
      line,
      message: `${what}: tables would be rebuilt, or data dropped: ${details.join(", ")}`,
    }));
  const found = [...rebuilt, ...(await breakingChanges(client, parsed, state))];
  printResult(
    found,
    json,
    () => found.map(({ line, message }) => `${file}:${line}: ${message}`).join("\n") || "No breaking change",
  );
  annotate(file, found);
  if (found.length > 0) process.exitCode = EXIT.different;
}

const SIGNS = { create: "+", change: "~", delete: "-" } as const;

function planText(steps: PlanStep[], others: string[]): string {
  const lines = steps.flatMap(({ effect, what, details, isGrave }) => [
    `${SIGNS[effect]} ${what}${isGrave && effect !== "delete" ? "  (rebuilds or drops)" : ""}`,
    ...details.map((one) => `    ${one}`),
  ]);
  const rest = others.length > 0 ? [`Not in the file: ${others.join(", ")}`] : [];
  return [...(lines.length > 0 ? lines : ["No difference"]), ...rest].join("\n");
}

function stepJson({ effect, what, details, line, isGrave }: PlanStep) {
  return { effect, what, details, line, needs_confirmation: isGrave };
}
