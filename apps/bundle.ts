/**
 * Writes the service into a folder, as images and servers run it: `bun apps/bundle.ts <folder>`.
 *
 * Its modules and packages are a few minified files there, which a process loads by role: from their sources, the three roles
 * take 34 MB more when they have started (257 instead of 224). Programs start by the same paths. Packages are there with their
 * licenses and manifests, which scanners of images read.
 */
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { appPath } from "../core/app-path";
import { buildAssets } from "./console/built-assets";

/** What is started by its path. */
const PROGRAMS = [
  "apps/main.ts",
  "apps/all/main.ts",
  "apps/worker/main.ts",
  "apps/proxy/main.ts",
  "apps/console/main.ts",
  "apps/operator/main.ts",
  "apps/worker/isolated.ts",
  "core/control/accounts/password-thread.ts",
  "core/external/gateway/main.ts",
];

/** What programs read, and what is served. */
const FILES = [
  "package.json",
  "bun.lock",
  "LICENSE",
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "docs",
  "patches/README.md",
  "findings/README.md",
  "sql",
];
/** Next to the code that reads or serves them. */
const TEXTS = "{apps,core,views}/**/*.{md,mjs,txt}";

/** Of a package. */
const MANIFEST_OR_LICENSE = /(^|\/)package\.json$|(licen[cs]e|notice|copying)[^/]*$/i;

export async function bundleInto(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await Bun.build({
    entrypoints: PROGRAMS.map((path) => appPath(path)),
    root: appPath(),
    outdir: folder,
    target: "bun",
    splitting: true,
    define: {
      // Packages are as in production. The configuration reads the variable by its name.
      "process.env.NODE_ENV": JSON.stringify("production"),
      // Pino looks there for threads of its own, which the log does not use: the path of this machine would be in the bundle.
      __dirname: JSON.stringify("."),
    },
    // Names of functions and classes are in logs, so they stay.
    minify: { whitespace: true, syntax: true },
    // `pg` looks for these on other platforms only; they are not installed.
    external: ["pg-cloudflare", "pg-native"],
    naming: { entry: "[dir]/[name].js", chunk: "chunks/[hash].js" },
  });
  // Bun does not compile a bundle again, whatever its name: programs start by the same paths as from their sources.
  for (const program of PROGRAMS) cpSync(join(folder, program.replace(/ts$/, "js")), join(folder, program));
  const packages = [...filesOf("node_modules/**/*")].filter(
    (file) => MANIFEST_OR_LICENSE.test(file) && !file.startsWith("node_modules/."),
  );
  // Not the modules of a version before: its processes may still load some of them.
  for (const file of FILES) rmSync(join(folder, file), { recursive: true, force: true });
  for (const file of [...FILES, ...filesOf(TEXTS), ...packages])
    cpSync(appPath(file), join(folder, file), { recursive: true });
  await buildAssets(folder);
}

function filesOf(pattern: string): Iterable<string> {
  return new Bun.Glob(pattern).scanSync({ cwd: appPath(), dot: true });
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) {
    console.error("Usage: bun apps/bundle.ts <folder>");
    process.exit(2);
  }
  await bundleInto(resolve(folder));
}
