/**
 * Makes a package of the customers' command line that installs alone: one program, without dependencies.
 *
 *     bun run cli:pack     writes dist/basetide-<version>.tgz
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { OLDEST_NODE } from "./oldest-node";

const root = join(import.meta.dirname, "../..");

const README = `# basetide

The command line of Basetide, which keeps a live, read-only Postgres copy of an Airtable base. It manages the bases of an account
through the management API: connects and syncs bases, prints credentials, generates types, and applies an account as a file.

\`\`\`sh
basetide login --url https://console.example.com      # asks for a token, which the console's page API makes
basetide bases list
basetide psql "Project Tracker"
basetide --help
\`\`\`

One file without dependencies, for Node ${OLDEST_NODE} and later. The console's documentation describes all commands, under
*Command line*.
`;

/**
 * Writes the package into `folder`, and its unpacked files next to it.
 *
 * @returns the path of the `.tgz`; the same sources give the same bytes
 */
export async function packCli(folder: string): Promise<string> {
  const files = join(folder, "cli");
  rmSync(files, { recursive: true, force: true });
  mkdirSync(files, { recursive: true });
  const { outputs, metafile } = await Bun.build({
    entrypoints: [join(root, "apps/cli/main.ts")],
    target: "node",
    // Comments would name the files as seen from the current folder. Names stay, for stack traces.
    minify: { whitespace: true, syntax: true },
    metafile: true,
  });
  writeFileSync(join(files, "basetide.mjs"), await outputs[0]!.text(), { mode: 0o755 });
  writeFileSync(join(files, "THIRD-PARTY-LICENSES"), licensesOf(Object.keys(metafile!.inputs)));
  cpSync(join(root, "LICENSE"), join(files, "LICENSE"));
  writeFileSync(join(files, "README.md"), README);
  const { name, version, license } = manifest;
  const description = "The command line of Basetide: a live, read-only Postgres copy of an Airtable base";
  const own = {
    ...{ name, version, description, license, type: "module" },
    ...{ bin: { basetide: "basetide.mjs" }, engines: { node: `>=${OLDEST_NODE}` } },
  };
  writeFileSync(join(files, "package.json"), `${JSON.stringify(own, null, 2)}\n`);
  const packed = Bun.spawnSync([process.execPath, "pm", "pack", "--destination", folder], { cwd: files });
  if (!packed.success) throw new Error(`The package could not be written: ${packed.stderr}`);
  return join(folder, `${name}-${version}.tgz`);
}

/** The licenses of the packages that the program contains: they require that their text goes with it. */
function licensesOf(inputs: string[]): string {
  const folders = inputs.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${folder} has no file with its license`);
    return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

if (import.meta.main) console.log(await packCli(join(root, "dist")));
