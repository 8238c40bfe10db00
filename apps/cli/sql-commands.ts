/** `basetide credentials` and `basetide psql`. */
import { spawn } from "node:child_process";
import { Command } from "commander";
import { formatFacts, printResult } from "../../core/terminal";
import { findBase } from "./base-ref";
import { type ApiSchemas, dataOf } from "./client";
import { type Common, command } from "./commands";
import { CliError } from "./failure";
import { openClient } from "./session";

const READ_ONLY = "SQL only reads this copy. Change the data in Airtable, or through the proxy.";

export function addSqlCommands(program: Command): void {
  program.addCommand(
    command("credentials", "how to connect with SQL")
      .argument("<base>", "id, Airtable id or name")
      .option("--rotate", "set a new password; the old one stops working")
      .action(async (reference: string, { json = false, rotate = false }: Common & { rotate?: boolean }) => {
        printResult(await credentialsOf(reference, rotate), json, ({ psql: _, ...rest }) =>
          formatFacts(rest),
        );
      }),
  );
  program.addCommand(
    new Command("psql")
      .description("open psql on a base's database; what follows -- is passed to psql")
      .argument("<base>", "id, Airtable id or name")
      .argument("[arguments...]", "arguments of psql")
      .action(async (reference: string, rest: string[]) => {
        const credentials = await credentialsOf(reference, false);
        // Postgres' own message about a write says only that the transaction is read-only.
        if (rest.length === 0 && process.stdin.isTTY) process.stderr.write(`${READ_ONLY}\n`);
        process.exitCode = await runPsql(credentials, rest);
      }),
  );
}

async function credentialsOf(reference: string, isRotated: boolean): Promise<ApiSchemas["Credentials"]> {
  const client = openClient();
  const { id } = await findBase(client, reference);
  const params = { path: { id } };
  return isRotated
    ? dataOf(client.POST("/api/v1/bases/{id}/credentials/rotate", { params }))
    : dataOf(client.GET("/api/v1/bases/{id}/credentials", { params }));
}

/** The password is in the environment of psql: others on the machine can read a command line. */
function runPsql(credentials: ApiSchemas["Credentials"], rest: string[]): Promise<number> {
  const { host, port, database, user, password, url } = credentials;
  const query = new URL(url).searchParams;
  const [mode, options] = [query.get("sslmode"), query.get("options")];
  const env = {
    ...process.env,
    ...{ PGHOST: host, PGPORT: String(port), PGDATABASE: database, PGUSER: user, PGPASSWORD: password },
    ...(mode ? { PGSSLMODE: mode } : {}),
    ...(options ? { PGOPTIONS: options } : {}),
  };
  // Ctrl-C cancels a query of psql's: both are told of it, and only psql knows what to do.
  process.on("SIGINT", () => undefined);
  return new Promise((resolve, reject) => {
    const child = spawn("psql", rest, { env, stdio: "inherit" });
    child.on("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "ENOENT"
          ? new CliError("psql_missing", "psql is not installed. Install your system's Postgres client.")
          : error,
      ),
    );
    child.on("exit", (code, signal) => resolve(signal ? 1 : (code ?? 1)));
  });
}
