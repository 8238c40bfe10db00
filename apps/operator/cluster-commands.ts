/** `cluster add|list|drain`: the Postgres servers that hold replicas. */

import { type Command, InvalidArgumentError } from "commander";
import { isProblem } from "../../core/check-result";
import {
  addCluster,
  type Cluster,
  checkCluster,
  drainCluster,
  listClusters,
  sharesOpenControl,
} from "../../core/control/placement";
import { BasetideError } from "../../core/errors";
import { formatFacts, formatTable, printResult } from "../../core/terminal";
import { withContext } from "./context";
import { addSecretOption, readSecret } from "./secret-option";

interface AddOptions {
  name: string;
  region: string;
  publicHost?: string;
  publicPort?: number;
  json: boolean;
}

export function addClusterCommands(program: Command): void {
  const cluster = program.command("cluster").description("Postgres servers that hold replicas");
  const add = cluster
    .command("add")
    .description("register a server for new databases")
    .requiredOption("--name <name>")
    .requiredOption("--region <code>", "such as eu-central-1");
  addSecretOption(add, "url", "admin URL: a role that may create databases and roles, and is not a superuser")
    .option("--public-host <host>", "host shown to customers (default: that of the URL)")
    .option("--public-port <port>", "port shown to customers (default: that of the URL)", parsePort)
    .option("--json", "print JSON", false)
    .action(async (options: AddOptions) => {
      const adminUrl = await readSecret("url", { ...options });
      const added = await withContext(async (ctx) => {
        const { name, region, publicHost, publicPort } = options;
        const results = URL.canParse(adminUrl) ? await checkCluster(adminUrl) : [];
        const problem = results.find(isProblem);
        if (problem) throw new BasetideError("conflict", `${problem.message}. ${problem.remedy}.`);
        if (URL.canParse(adminUrl) && (await sharesOpenControl(ctx.db, adminUrl)))
          throw new BasetideError(
            "conflict",
            "This server holds the control plane, whose database every role may connect to, also those of customers. Close that database first: `operator doctor` prints the statement.",
          );
        return addCluster(ctx, { name, region, adminUrl, publicHost, publicPort });
      });
      printResult(toRow(added), options.json, formatFacts);
    });
  cluster
    .command("list")
    .description("list all clusters with their region and number of databases")
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }) => {
      const clusters = await withContext(({ db }) => listClusters(db));
      printResult(clusters.map(toRow), options.json, (rows) => formatTable(rows, "No clusters"));
    });
  cluster
    .command("drain")
    .description("stop creating databases on a cluster")
    .argument("<name>")
    .option("--json", "print JSON", false)
    .action(async (name: string, options: { json: boolean }) => {
      const drained = await withContext(({ db, actor }) => drainCluster(db, name, actor));
      printResult(toRow(drained), options.json, formatFacts);
    });
}

function toRow(cluster: Cluster) {
  return {
    id: cluster.id,
    name: cluster.name,
    region: cluster.region,
    host: cluster.publicHost,
    port: cluster.publicPort,
    state: cluster.state,
    databases: cluster.databases,
  };
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new InvalidArgumentError("a port must be a number from 1 to 65535");
  return port;
}
