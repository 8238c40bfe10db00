/** `account create`, `account move`, `account reset-link`, `account remove-two-factor`, `token create`: access to the console and the management API. */
import type { Command } from "commander";
import {
  accountByEmail,
  createAccount,
  createToken,
  makeResetLink,
  removeTwoFactor,
} from "../../core/control/accounts";
import { formatFacts, printResult } from "../../core/terminal";
import { addAccountMoveCommand } from "./account-move-command";
import { withContext } from "./context";
import { addSecretOption, readSecret } from "./secret-option";

export function addAccountCommands(program: Command): void {
  const account = program.command("account").description("accounts of customers and operators");
  account
    .command("reset-link")
    .description(
      "create a one-time link to set a new password, for a person who gets no mail; it is valid for an hour",
    )
    .requiredOption("--email <address>")
    .option("--json", "print JSON", false)
    .action(async (options: { email: string; json: boolean }) => {
      const answer = await withContext(async ({ db, actor, config }) => {
        const path = await makeResetLink(db, options.email, actor);
        return { email: options.email.trim().toLowerCase(), link: `${config.consoleUrl}${path}` };
      });
      printResult(answer, options.json, formatFacts);
    });
  account
    .command("remove-two-factor")
    .description("turn off two-factor authentication for a person who has lost the app and the backup codes")
    .requiredOption("--email <address>")
    .option("--json", "print JSON", false)
    .action(async (options: { email: string; json: boolean }) => {
      const email = options.email.trim().toLowerCase();
      await withContext(({ db, actor }) => removeTwoFactor(db, email, actor));
      printResult({ email, two_factor: "off" }, options.json, formatFacts);
    });
  const create = account
    .command("create")
    .description("create an account and print its first API token")
    .requiredOption("--email <address>");
  addSecretOption(create, "password", "password of at least 8 characters")
    .option("--operator", "allow the account to operate the service", false)
    .option("--json", "print JSON", false)
    .action(async (options: { email: string; operator: boolean; json: boolean }) => {
      const { email, operator: isOperator } = options;
      const password = await readSecret("password", options);
      const answer = await withContext(async ({ db, actor }) => {
        const account = await createAccount(db, { email, password, isOperator }, actor);
        const token = await createToken(db, account.id, "first", { actor });
        return { id: account.id, email: account.email, is_operator: account.isOperator, token };
      });
      printResult(answer, options.json, formatFacts);
    });

  addAccountMoveCommand(account);

  program
    .command("token")
    .description("API tokens")
    .command("create")
    .description("create an API token for an account; it is shown only once")
    .requiredOption("--email <address>")
    .option("--name <name>", "the purpose of the token", "operator")
    .option("--json", "print JSON", false)
    .action(async (options: { email: string; name: string; json: boolean }) => {
      const answer = await withContext(async ({ db, actor }) => {
        const account = await accountByEmail(db, options.email);
        const token = await createToken(db, account.id, options.name, { actor });
        return { email: account.email, name: options.name, token };
      });
      printResult(answer, options.json, formatFacts);
    });
}
