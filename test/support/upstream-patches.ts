/**
 * The patches in `patches/upstream/`, which offer our changes of postgres.js to its authors, and copies of the driver to
 * apply them to. As a program, writes `patches/kept.diff`: what our own patch changes beyond them.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchFolder } from "./scratch";
import { repoRoot } from "./source-files";

const FOLDER = join(repoRoot, "patches/upstream");
const OWN_PATCH = join(repoRoot, "patches/postgres@3.4.9.patch");
const KEPT = join(repoRoot, "patches/kept.diff");
const INSTALLED = join(repoRoot, "node_modules/postgres");
const HARNESS = join(import.meta.dirname, "upstream-harness.ts");
/** The paths that a patch may change, as far as the npm package has them. */
const PARTS = ["src", "types", "README.md"];
/** The room that a copy needs, in bytes. */
const ROOM = 2 ** 20;

/** What protects from servers that break the protocol: customers' servers are behind the gateway, and ours are trusted. */
const OFFERED_ONLY = new Set(["0006-authentication-errors.patch", "0007-protocol-violations.patch"]);

/** The names of the files, in the order in which the patches apply. */
export const upstreamPatches = readdirSync(FOLDER).sort();
/** Those that are part of our patch. */
export const appliedPatches = upstreamPatches.filter((name) => !OFFERED_ONLY.has(name));

export const readUpstreamPatch = (name: string) => readFileSync(join(FOLDER, name), "utf8");

export interface DriverCopy extends Disposable {
  folder: string;
  /**
   * Applies a patch of ours, except for upstream's tests, which the npm package does not have.
   *
   * @param flags of `git apply`
   */
  apply(name: string, ...flags: string[]): void;
  /** Applies these patches, one on top of the other. */
  applyAll(names: string[]): void;
  /** Applies `patches/kept.diff`. */
  applyKept(): void;
  /** Writes a program that runs the tests of these patches, and returns its path. */
  addTests(names: string[]): string;
  /** The files of the driver with their texts. */
  sources(): Record<string, string>;
}

/**
 * Copies the driver.
 *
 * @param state `released`: as its authors published it; `installed`: with our patch
 */
export function driverCopy(state: "released" | "installed"): DriverCopy {
  const folder = scratchFolder("upstream", ROOM);
  for (const part of PARTS) cpSync(join(INSTALLED, part), join(folder, part), { recursive: true });
  if (state === "released") git(folder, "apply", "-R", OWN_PATCH);
  const copy: DriverCopy = {
    folder,
    apply(name, ...flags) {
      git(folder, "apply", "--exclude=tests/*", ...flags, join(FOLDER, name));
    },
    applyAll(names) {
      // The context of one may be what another one changes.
      for (const name of names) copy.apply(name, "-C1");
    },
    applyKept() {
      git(folder, "apply", KEPT);
    },
    addTests(names) {
      const program = join(folder, "tests/index.js");
      mkdirSync(dirname(program));
      writeFileSync(program, [HEAD, ...names.map(testsOf), "finish()\n"].join("\n"));
      return program;
    },
    sources() {
      const files = readdirSync(join(folder, "src")).sort();
      return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, "src", file), "utf8")]));
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
  return copy;
}

/** What upstream's `tests/index.js` has at its start, as far as our tests use it. */
const HEAD = `import net from 'net'
import postgres from '../src/index.js'
import { delay, finish, options, t } from ${JSON.stringify(HARNESS)}
`;

/** The lines that a patch adds to upstream's `tests/index.js`. */
export function testsOf(name: string): string {
  const diff = readUpstreamPatch(name)
    .split(/^(?=diff --git )/m)
    .find((part) => part.startsWith("diff --git a/tests/index.js "));
  return Array.from((diff ?? "").matchAll(/^\+(?!\+\+ )(.*)$/gm), ([, line]) => line).join("\n");
}

/** @throws Error with git's message */
function git(folder: string, ...words: string[]): string {
  const env = {
    ...process.env,
    // Neither an enclosing repository nor a user's settings change the result.
    GIT_DIR: undefined,
    GIT_CEILING_DIRECTORIES: dirname(folder),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  const child = Bun.spawnSync(["git", ...words], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
  // `git diff --no-index` exits with 1 if there is a difference.
  const isDone = child.success || (words[0] === "diff" && child.exitCode === 1);
  if (!isDone) throw new Error(`git ${words.join(" ")}: ${child.stderr}`);
  return child.stdout.toString();
}

/** What our patch changes beyond the patches for upstream. */
function keptDiff(): string {
  using offered = driverCopy("released");
  using installed = driverCopy("installed");
  offered.applyAll(appliedPatches);
  // With these two names, the paths get the prefixes that `git apply` expects.
  const folder = scratchFolder("kept", ROOM);
  try {
    cpSync(join(offered.folder, "src"), join(folder, "a/src"), { recursive: true });
    cpSync(join(installed.folder, "src"), join(folder, "b/src"), { recursive: true });
    return git(folder, "diff", "--no-index", "--no-prefix", "a", "b");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) writeFileSync(KEPT, keptDiff());
