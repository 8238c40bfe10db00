#!/usr/bin/env node
/** The customers' command line: `basetide <command>`. `bun run cli:build` makes one file of it for Node. */
import { runCli } from "./program";

await runCli(process.argv.slice(2));
