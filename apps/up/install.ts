/**
 * Installs the packages that running needs, before `bun run up` starts: without packages of its own, since there are none
 * yet. A clone that has the development packages keeps them.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
/** Only development needs it. */
const isForDeveloping = existsSync(join(root, "node_modules/vitest"));
const isFirst = !existsSync(join(root, "node_modules"));

if (isFirst) console.log("Installing Basetide's packages: some seconds, or minutes on a slow network…");
const install = Bun.spawnSync(
  [
    process.execPath,
    "install",
    "--frozen-lockfile",
    ...(isForDeveloping ? [] : ["--production", "--omit=peer"]),
  ],
  { cwd: root, stdout: "pipe", stderr: "pipe" },
);
if (!install.success) {
  console.error(`${install.stdout}${install.stderr}`.trim());
  console.error("basetide up: the packages could not be installed. Check the network, then start again.");
  process.exit(1);
}
