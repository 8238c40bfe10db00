/** `audit list`: the audit log of all accounts. */
import type { Command } from "commander";
import { accountByEmail } from "../../core/control/accounts";
import { listChanges } from "../../core/control/audit";
import { formatTable, printResult } from "../../core/terminal";
import { withContext } from "./context";
import { wholeNumber } from "./whole-number";

const DEFAULT_ENTRIES = 100;
const MAX_ENTRIES = 10_000;

interface Options {
  account?: string;
  before?: string;
  limit: number;
  json: boolean;
}

export function addAuditCommands(program: Command): void {
  program
    .command("audit")
    .description("the audit log")
    .command("list")
    .description("list entries, newest first; entries are deleted after 400 days")
    .option("--account <address>", "only the entries of this account")
    .option("--before <id>", "only entries older than this one")
    .option(
      "--limit <count>",
      `number of entries, at most ${MAX_ENTRIES}`,
      wholeNumber(1, MAX_ENTRIES),
      DEFAULT_ENTRIES,
    )
    .option("--json", "print JSON", false)
    .action(async ({ account, before, limit, json }: Options) => {
      const entries = await withContext(async ({ db }) => {
        const accountId = account === undefined ? undefined : (await accountByEmail(db, account)).id;
        return listChanges(db, { accountId, before, limit });
      });
      const all = entries.map((entry) => ({
        id: entry.id,
        at: entry.at.toISOString(),
        account: entry.account,
        actor: `${entry.actorKind} ${entry.actor}`,
        action: entry.action,
        subject: entry.subject,
        details: entry.details,
      }));
      printResult(all, json, (rows) =>
        formatTable(
          rows.map((row) => ({ ...row, details: JSON.stringify(row.details) })),
          "Nothing yet",
        ),
      );
    });
}
