/** `basetide login` and `basetide logout`. */
import type { Command } from "commander";
import { printResult } from "../../core/terminal";
import { dataOf } from "./client";
import { type Common, command, promptSecret } from "./commands";
import { CliError } from "./failure";
import { checkedUrl, clientFor, DEFAULT_URL, removeLogin, saveLogin } from "./session";

export function addLoginCommands(program: Command): void {
  program.addCommand(
    command(
      "login",
      "store the console's address and an API token, which is read from the terminal or standard input",
    )
      .option("--url <url>", "the console's address", process.env.BASETIDE_URL || DEFAULT_URL)
      .action(async ({ url, json = false }: Common & { url: string }) => {
        const address = checkedUrl(url);
        const token = await promptSecret(`API token of ${address}`);
        if (token === "")
          throw new CliError("usage", "The token is empty. Create one on the console's page API.");
        const bases = await dataOf(clientFor({ url: address, token }).GET("/api/v1/bases"));
        const file = saveLogin({ url: address, token });
        printResult(
          { url: address, bases: bases.length, file },
          json,
          () => `Logged in to ${address}. Stored in ${file}`,
        );
      }),
  );
  program.addCommand(
    command("logout", "forget the stored token").action(({ json = false }: Common) => {
      const removed = removeLogin();
      printResult({ removed }, json, () =>
        removed ? "Logged out. The token itself stays valid until you revoke it." : "Not logged in.",
      );
    }),
  );
}
