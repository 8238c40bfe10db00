/** Docker Compose's own parser, which needs no engine: the machine's program, or that of Debian's package. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { debianPackages } from "./debian-packages";
import { repoRoot } from "./source-files";

/** The first release of Debian with a Compose that knows `content` of `configs`. */
const SUITE = "trixie";
const PACKAGE = "docker-compose";

/** @returns the program's first words, or why there is none */
export function composeProgram(): string[] | string {
  const own = ["docker", "compose"];
  if (Bun.which("docker") && Bun.spawnSync([...own, "version"]).success) return own;
  const packages = debianPackages([PACKAGE], SUITE);
  if (typeof packages === "string") return packages;
  const folder = join(repoRoot, "node_modules/.cache", `basetide-${PACKAGE}-${SUITE}`);
  const program = join(folder, "usr/libexec/docker/cli-plugins", PACKAGE);
  if (!existsSync(program)) Bun.spawnSync(["dpkg-deb", "--extract", packages[PACKAGE]!, folder]);
  return [program];
}
