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
    .description("Postgres servers, as their superuser")
    .command("prepare")
    .description(
      "make the role that DATABASE_URL (control) or REPLICA_URL (replicas) names, with the rights that the service needs and no more; run it once per server, and again after an upgrade of Basetide",
    )
    .argument("<part>", "control or replicas", parsePart)
    .option("--url-stdin", "read the superuser's URL from standard input; SUPERUSER_URL unless given", false)
    .option("--dedicated", "no other program uses the server: close all its databases to PUBLIC", false)
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
  if (url === undefined) throw new BasetideError("config_invalid", `${variable}: required here`);
  if (superuserUrl === undefined || !URL.canParse(superuserUrl)) {
    throw new BasetideError(
      "config_invalid",
      "SUPERUSER_URL: required here, or --url-stdin: postgres://user:password@host:port/database",
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
  return `${done}, but for what this server keeps from its admin (\`doctor\` says what that means):\n${refused.join(";\n")}`;
}

function parsePart(text: string): Part {
  if (text === "control" || text === "replicas") return text;
  throw new InvalidArgumentError("control or replicas");
}
