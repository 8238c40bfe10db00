#!/usr/bin/env node
/** The customers' command line: `basetide <command>`. `bun run cli:pack` makes a package of it for Node. */
import { OLDEST_NODE } from "./oldest-node";

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  const found = process.versions.node;
  console.error(`error (node_outdated): This is Node ${found}. Install Node ${OLDEST_NODE} or later.`);
  process.exitCode = 1;
} else {
  // Whoever reads it has ended, as in `basetide logs -f … | head`.
  process.stdout.on("error", () => process.exit());
  // Imported only now: an older Node may not be able to run it.
  const { runCli } = await import("./program");
  await runCli(process.argv.slice(2));
}
