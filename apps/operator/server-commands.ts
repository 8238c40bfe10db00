/** `server prepare`: runs once per Postgres server, so that the service needs no superuser rights there. */
import { type Command, InvalidArgumentError } from "commander";
import { type Config, readConfig } from "../../core/config";
import { prepareControl } from "../../core/control/setup";
import { BasetideError } from "../../core/errors";
import { loginOf, prepareCluster } from "../../core/replica";
import { print } from "./output";

type Part = "control" | "replicas";

interface PrepareOptions {
  urlStdin: boolean;
  dedicated: boolean;
  json: boolean;
}

export function addServerCommands(program: Command): void {
  program
    .command("server")
    .description("set up Postgres servers as their superuser")
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
      print({ part, refused }, options.json, () => toText(part, refused));
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
