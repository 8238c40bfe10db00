/**
 * The few packages of Debian that Bun needs. `debian.json` pins their versions and hashes; Debian's package manager fetches
 * them from the mirror that this machine uses.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pinned from "./debian.json" with { type: "json" };

export type DebianPackages = Record<string, { version: string; sha256: string }>;

export const PINNED: DebianPackages = pinned;

/** A mirror keeps the current versions only. */
export class NotOnMirror extends Error {}

/**
 * Fetches the packages, each once: `folder` keeps them.
 *
 * @returns the paths of the `.deb` files
 * @throws NotOnMirror if the mirror has other versions by now; any other error if a package is not the pinned one
 */
export function fetchDebian(packages: DebianPackages, folder: string): string[] {
  return Object.entries(packages).map(([name, { version, sha256 }]) => {
    const path = join(folder, `${name}-${sha256.slice(0, 12)}.deb`);
    if (existsSync(path)) return path;
    const fetched = download(`${name}=${version}`, folder);
    if (fetched === undefined) {
      const remedy = "Use a mirror that has it, or run `bun run image --update` to take the current versions";
      throw new NotOnMirror(`Debian's mirror has no ${name} ${version}. ${remedy}`);
    }
    if (hashOf(fetched) !== sha256)
      throw new Error(`${name} ${version} has another hash than in debian.json`);
    renameSync(fetched, path);
    return path;
  });
}

/**
 * The versions that the mirror has now; undefined if it does not answer.
 *
 * @throws Error if it lacks only some of the packages
 */
export function currentDebian(folder: string): DebianPackages | undefined {
  const current: DebianPackages = {};
  for (const name of Object.keys(PINNED)) {
    const path = download(name, folder);
    if (path === undefined && Object.keys(current).length === 0) return undefined;
    if (path === undefined) throw new Error(`Debian's mirror has no package ${name}`);
    const { stdout } = Bun.spawnSync(["dpkg-deb", "--field", path, "Version"]);
    current[name] = { version: stdout.toString().trim(), sha256: hashOf(path) };
    rmSync(path);
  }
  return current;
}

/**
 * @param suite of another release of Debian than the machine's, such as `trixie`
 * @returns the file, or undefined if the mirror does not have it, or does not answer
 */
export function download(what: string, folder: string, suite?: string): string | undefined {
  if (!Bun.which("apt-get") || process.arch !== "x64")
    throw new Error("An image is built on Debian, on a machine of the architecture amd64");
  const target = join(folder, `fetched-${crypto.randomUUID().slice(0, 8)}`);
  // Own lists: those of the machine may be missing or outdated, and need root.
  const state = join(folder, suite ? `apt-${suite}` : "apt");
  for (const part of ["lists/partial", "archives/partial"]) mkdirSync(join(state, part), { recursive: true });
  mkdirSync(target);
  const places = [`-oDir::State::lists=${state}/lists`, `-oDir::Cache=${state}`];
  if (suite) places.push(...sourceOf(suite, state));
  const apt = (...words: string[]) =>
    Bun.spawnSync(["apt-get", "-qq", ...places, ...words], { cwd: target }).success;
  const isFetched = apt("download", what) || (apt("update") && apt("download", what));
  const [file] = isFetched ? readdirSync(target) : [];
  const path = file === undefined ? undefined : `${target}.deb`;
  if (path) renameSync(join(target, file!), path);
  rmSync(target, { recursive: true });
  return path;
}

/** The options for another release on the mirror that this machine uses. */
function sourceOf(suite: string, state: string): string[] {
  const asked = Bun.spawnSync(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"]);
  const lines = asked.stdout.toString().split("\n");
  const mirror = lines.find((line) => line.startsWith("Debian|Debian|"))?.split("|")[2];
  const signed = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg";
  writeFileSync(join(state, "sources.list"), mirror ? `deb [${signed}] ${mirror} ${suite} main\n` : "");
  return [`-oDir::Etc::SourceList=${state}/sources.list`, "-oDir::Etc::SourceParts=/dev/null"];
}

function hashOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
