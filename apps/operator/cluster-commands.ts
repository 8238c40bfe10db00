/** `cluster add|set-url|list|drain`: the Postgres servers that hold replicas. */

import type { Command } from "commander";
import { type Cluster, drainCluster, listClusters } from "../../core/control/placement";
import { addCheckedCluster, changeCheckedCluster } from "../../core/control/setup";
import { formatFacts, formatTable, printResult } from "../../core/terminal";
import { withContext } from "./context";
import { addSecretOption, readSecret } from "./secret-option";
import { wholeNumber } from "./whole-number";

interface ChangeOptions {
  publicHost?: string;
  publicPort?: number;
  json: boolean;
}

interface AddOptions extends ChangeOptions {
  name: string;
  region: string;
}

const ADMIN_URL = "admin URL: a role that may create databases and roles, and is not a superuser";

export function addClusterCommands(program: Command): void {
  const port = wholeNumber(1, 65_535);
  const cluster = program.command("cluster").description("Postgres servers that hold replicas");
  const add = cluster
    .command("add")
    .description("register a server for new databases")
    .requiredOption("--name <name>")
    .requiredOption("--region <code>", "such as eu-central-1");
  addSecretOption(add, "url", ADMIN_URL)
    .option("--public-host <host>", "host shown to customers (default: that of the URL)")
    .option("--public-port <port>", "port shown to customers (default: that of the URL)", port)
    .option("--json", "print JSON", false)
    .action(async (options: AddOptions) => {
      const adminUrl = await readSecret("url", { ...options });
      const { name, region, publicHost, publicPort } = options;
      const added = await withContext((ctx) =>
        addCheckedCluster(ctx, { name, region, adminUrl, publicHost, publicPort }),
      );
      printResult(toRow(added), options.json, formatFacts);
    });
  const setUrl = cluster
    .command("set-url")
    .description("give an added cluster another admin URL: a new password, or a new address of its server")
    .argument("<name>");
  addSecretOption(setUrl, "url", ADMIN_URL)
    .option("--public-host <host>", "host shown to customers (default: as before)")
    .option("--public-port <port>", "port shown to customers (default: as before)", port)
    .option("--json", "print JSON", false)
    .action(async (name: string, options: ChangeOptions) => {
      const adminUrl = await readSecret("url", { ...options });
      const { publicHost, publicPort } = options;
      const changed = await withContext((ctx) =>
        changeCheckedCluster(ctx, { name, adminUrl, publicHost, publicPort }),
      );
      printResult(toRow(changed), options.json, formatFacts);
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
