/**
 * `server prepare`: runs once per Postgres server, so that the service needs no superuser rights there. `server migrate`:
 * brings the control plane's database up to date before the processes of a version start.
 */
import { type Command, InvalidArgumentError } from "commander";
import { type Config, readConfig } from "../../core/config";
import { migrateControl, prepareControl } from "../../core/control/setup";
import { BasetideError } from "../../core/errors";
import { loginOf, prepareCluster } from "../../core/replica";
import { printResult } from "../../core/terminal";
import { withContext } from "./context";

type Part = "control" | "replicas";

interface PrepareOptions {
  urlStdin: boolean;
  dedicated: boolean;
  json: boolean;
}

export function addServerCommands(program: Command): void {
  const server = program
    .command("server")
    .description("set up Postgres servers, and the control plane's tables");
  server
    .command("migrate")
    .description(
      "bring the control plane's database up to date; each process of a new version does so at its start, this command before",
    )
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }) => {
      const migrations = await withContext((ctx) => migrateControl(ctx.config.databaseUrl!, ctx.log));
      const done = migrations.length > 0 ? `Run: ${migrations.join(", ")}` : "No migration was missing";
      printResult(
        { migrations },
        options.json,
        () => `${done}. The functions are those of this version, or later ones.`,
      );
    });
  server
    .command("prepare")
    .description(
      "create the role of DATABASE_URL (control) or REPLICA_URL (replicas) with exactly the rights that the service needs; run it once per server, and again after each upgrade of Basetide",
    )
    .argument("<part>", "control or replicas", parsePart)
    .option("--url-stdin", "read the superuser's URL from standard input (default: SUPERUSER_URL)", false)
    .option(
      "--dedicated",
      "no other program uses the server: revoke access to all its databases from PUBLIC",
      false,
    )
    .option("--json", "print JSON", false)
    .action(async (part: Part, options: PrepareOptions) => {
      const config = readConfig(process.env);
      const superuserUrl = options.urlStdin ? (await Bun.stdin.text()).trim() : config.superuserUrl;
      const refused = await prepare(config, part, superuserUrl, options.dedicated);
      printResult({ part, refused }, options.json, () => toText(part, refused));
    });
}

async function prepare(
  config: Config,
  part: Part,
  superuserUrl: string | undefined,
  isDedicated: boolean,
): Promise<string[]> {
  const variable = part === "control" ? "DATABASE_URL" : "REPLICA_URL";
  const url = part === "control" ? config.databaseUrl : config.replicaUrl;
  if (url === undefined) throw new BasetideError("config_invalid", `${variable} is required`);
  if (superuserUrl === undefined || !URL.canParse(superuserUrl)) {
    throw new BasetideError(
      "config_invalid",
      "SUPERUSER_URL or --url-stdin is required: postgres://user:password@host:port/database",
    );
  }
  const login = loginOf(url, variable);
  return part === "control"
    ? prepareControl(superuserUrl, login)
    : prepareCluster(superuserUrl, login, { isDedicated });
}

function toText(part: Part, refused: string[]): string {
  const done = part === "control" ? "Ready for the control plane" : "Ready for replicas";
  if (refused.length === 0) return `${done}.`;
  return `${done}, except for statements that this server refuses to its admin (\`doctor\` explains the effects):\n${refused.join(";\n")}`;
}

function parsePart(text: string): Part {
  if (text === "control" || text === "replicas") return text;
  throw new InvalidArgumentError("must be control or replicas");
}
