/** `account create`, `token create`: who may use the management API. */
import type { Command } from "commander";
import { accountByEmail, createAccount, createToken } from "../../core/control";
import { withContext } from "./context";
import { facts, print } from "./output";

export function addAccountCommands(program: Command): void {
  program
    .command("account")
    .description("accounts of customers and operators")
    .command("create")
    .description("create an account and print its first API token")
    .requiredOption("--email <address>")
    .requiredOption("--password <password>", "at least 8 characters")
    .option("--operator", "may operate the service", false)
    .option("--json", "print JSON", false)
    .action(async (options: { email: string; password: string; operator: boolean; json: boolean }) => {
      const { email, password, operator: isOperator } = options;
      const answer = await withContext(async ({ db, actor }) => {
        const account = await createAccount(db, { email, password, isOperator }, actor);
        const token = await createToken(db, account.id, "first", { actor });
        return { id: account.id, email: account.email, is_operator: account.isOperator, token };
      });
      print(answer, options.json, facts);
    });

  program
    .command("token")
    .description("API tokens")
    .command("create")
    .description("make an API token for an account; it is shown this once")
    .requiredOption("--email <address>")
    .option("--name <name>", "what it is for", "operator")
    .option("--json", "print JSON", false)
    .action(async (options: { email: string; name: string; json: boolean }) => {
      const answer = await withContext(async ({ db, actor }) => {
        const account = await accountByEmail(db, options.email);
        const token = await createToken(db, account.id, options.name, { actor });
        return { email: account.email, name: options.name, token };
      });
      print(answer, options.json, facts);
    });
}
