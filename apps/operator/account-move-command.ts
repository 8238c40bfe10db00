/** `account move`: moves an account with its bases to another control plane. */
import type { Command } from "commander";
import {
  abortMove,
  findMovingAccount,
  type MovePlan,
  type MovingAccount,
  moveAccount,
  type PlaneContext,
  planMove,
} from "../../core/control/account-move";
import { BasetideError, invalid } from "../../core/errors";
import { closeContext, createContext } from "../../core/process";
import { confirmed, formatFacts, printResult } from "../../core/terminal";
import { withContext } from "./context";
import { addSecretOption, readSecret } from "./secret-option";

interface MoveCommandOptions {
  dryRun: boolean;
  abort: boolean;
  yes: boolean;
  mergeUsers: boolean;
  proxyUrl?: string;
  json: boolean;
}

const DONE =
  "Send the account's people to the other console, and the requests for its bases to the other proxy. They sign in again; API tokens and database credentials stay the same.";

export function addAccountMoveCommand(account: Command): void {
  const move = account
    .command("move")
    .description(
      "move an account with its bases to another control plane; the databases stay where they are. Repeat it after an interruption",
    )
    .argument("<account>", "its e-mail address or id");
  addSecretOption(
    move,
    "to",
    "URL of the other control plane's database; its SECRET_KEY is read from TARGET_SECRET_KEY",
  )
    .option("--dry-run", "print what would move, and change nothing", false)
    .option("--abort", "return to the state before an interrupted move", false)
    .option(
      "--merge-users",
      "people whose address the other control plane knows keep their login there",
      false,
    )
    .option("--proxy-url <url>", "public URL of the other proxy, which this one's clients are told")
    .option("--yes", "do not ask", false)
    .option("--json", "print JSON", false)
    .action(async (given: string, options: MoveCommandOptions) => {
      const url = await readSecret("to", { ...options });
      await withContext(async (source) => {
        await withTarget(source, url, (target) => run(source, target, given, options));
      });
    });
}

async function run(
  source: PlaneContext,
  target: PlaneContext,
  given: string,
  options: MoveCommandOptions,
): Promise<void> {
  const account = await findMovingAccount(source, given);
  const { json, yes } = options;
  if (options.abort) {
    await abortMove(source, target, account);
    return printResult(
      { ...account, aborted: true },
      json,
      () => `${account.email} stays in this control plane`,
    );
  }
  const move = { isMerging: options.mergeUsers, proxyUrl: options.proxyUrl };
  const plan = await planOf(source, target, account, move);
  if (options.dryRun) return printResult(plan, json, toText);
  if (!yes) {
    if (plan) console.error(`${toText(plan)}\n`);
    const question = plan ? "Stop the account here and move it?" : "Complete the move?";
    if (!(await confirmed(question))) throw invalid("Nothing was changed. Confirm the move with --yes");
  }
  await moveAccount(source, target, account, move);
  printResult({ ...account, moved: true }, json, () => `${account.email} has moved. ${DONE}`);
}

/** Null if the account's rows have moved already. */
async function planOf(
  source: PlaneContext,
  target: PlaneContext,
  account: MovingAccount,
  options: { isMerging: boolean },
): Promise<MovePlan | null> {
  const [isHere] = await source.db`select from accounts where id = ${account.id}`;
  return isHere ? (await planMove(source, target, account, options)).plan : null;
}

/** @throws BasetideError `config_invalid` without TARGET_SECRET_KEY */
async function withTarget(
  source: PlaneContext,
  databaseUrl: string,
  work: (target: PlaneContext) => Promise<void>,
): Promise<void> {
  const { targetSecretKey: secretKey } = source.config;
  if (secretKey === undefined) {
    throw new BasetideError(
      "config_invalid",
      "TARGET_SECRET_KEY is required: the SECRET_KEY of the other control plane, which encrypts the account's secrets there",
    );
  }
  if (!URL.canParse(databaseUrl))
    throw invalid("--to is not a URL: postgres://user:password@host:port/database");
  const config = { ...source.config, databaseUrl, secretKey, previousSecretKeys: [] };
  const target = createContext(config, "operator");
  try {
    await work({ ...target, actor: source.actor });
  } finally {
    await closeContext(target);
  }
}

function toText(plan: MovePlan | null): string {
  if (!plan) return "The account's rows have moved; the move must be completed";
  return [
    formatFacts({
      account: `${plan.account.email} (${plan.account.id})`,
      bases: plan.bases.length,
      "people who stay members of other accounts here": plan.copiedPeople.join(", ") || null,
      "people who keep their login there": plan.mergedPeople.join(", ") || null,
    }),
    "",
    ...plan.bases,
    "",
    "Rows:",
    formatFacts(plan.rows),
  ].join("\n");
}
