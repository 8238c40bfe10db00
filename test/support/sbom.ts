/**
 * Generates a software bill of materials (CycloneDX 1.6, JSON) of all packages in the lock file: names, versions,
 * hashes, dependencies, and which ones only development needs; and of the image that `bun run image` builds, which adds
 * Debian's packages and Bun. The property `basetide:image` marks what is in it. The same files give the same bytes.
 *
 *     bun run sbom [file] default dist/sbom.cdx.json
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";
import { type DebianPackages, PINNED } from "../../deploy/image/debian";
import { repoRoot } from "./source-files";

/** The parts of bun.lock that the bill of materials uses. */
interface LockFile {
  workspaces: Record<string, Dependencies & { devDependencies?: Record<string, string> }>;
  patchedDependencies?: Record<string, string>;
  /** By install path: `name`, or `parent/name`. `[name@version, registry, facts, integrity]` */
  packages: Record<string, [string, string?, Dependencies?, string?]>;
}

interface Dependencies {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
  optionalPeers?: string[];
}

/** What the image adds to the packages of the service. */
export interface ImageBase {
  debian: DebianPackages;
  /** The text of the lock file that pins Bun. */
  lockText: string;
}

/** Bun as it is in the image. */
const BUN = "@oven/bun-linux-x64-baseline";
const INTEGRITY = /^sha512-(.+)$/;

/** The bill of materials, as text. */
export function writeSbom(
  lockText: string,
  project: { name: string; version: string; license: string },
  base: ImageBase,
): string {
  const lock = Bun.JSONC.parse(lockText) as LockFile;
  const needed = neededToRun(lock, KINDS);
  // As the Dockerfile installs them.
  const inImage = neededToRun(lock, ["dependencies"]);
  const root = new Models.Component(Enums.ComponentType.Application, project.name, {
    version: project.version,
    bomRef: project.name,
    licenses: new Models.LicenseRepository([new Models.SpdxLicense(project.license)]),
  });
  const bom = new Models.Bom({ metadata: new Models.Metadata({ component: root }) });
  const components = new Map<string, Models.Component>();
  for (const path of Object.keys(lock.packages)) {
    const component = componentOf(lock, path, needed.has(path));
    // One component for each version, however often it is installed.
    const known = components.get(component.bomRef.value!) ?? component;
    if (needed.has(path)) known.scope = Enums.ComponentScope.Required;
    if (inImage.has(path)) known.properties.add(IN_IMAGE);
    components.set(known.bomRef.value!, known);
    bom.components.add(known);
  }
  const at = (path: string) => components.get(lock.packages[path]![0])!;
  for (const path of directOf(lock, [...KINDS, "devDependencies"])) root.dependencies.add(at(path).bomRef);
  for (const path of Object.keys(lock.packages))
    for (const needs of neededBy(lock, path, KINDS)) at(path).dependencies.add(at(needs).bomRef);
  for (const component of baseOf(base)) {
    component.properties.add(IN_IMAGE);
    bom.components.add(component);
    root.dependencies.add(component.bomRef);
  }
  const normalizing = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(normalizing).serialize(bom, { sortLists: true, space: 2 })}\n`;
}

/** A set holds it once: it is one object. */
const IN_IMAGE = new Models.Property("basetide:image", "true");

function baseOf({ debian, lockText }: ImageBase): Models.Component[] {
  const packages = Object.entries(debian).map(([name, { version, sha256 }]) => {
    const component = new Models.Component(Enums.ComponentType.Library, name, {
      version,
      bomRef: `deb:${name}@${version}`,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=amd64&distro=bookworm`,
      scope: Enums.ComponentScope.Required,
    });
    component.hashes.set(Enums.HashAlgorithm["SHA-256"], sha256);
    return component;
  });
  return [...packages, componentOf(Bun.JSONC.parse(lockText) as LockFile, BUN, true)];
}

function componentOf(lock: LockFile, path: string, isRequired: boolean): Models.Component {
  const [id, , , integrity] = lock.packages[path]!;
  const at = id.lastIndexOf("@");
  const [fullName, version] = [id.slice(0, at), id.slice(at + 1)];
  const [, group, name] = /^(@[^/]+)\/(.+)$/.exec(fullName) ?? [undefined, undefined, fullName];
  const component = new Models.Component(Enums.ComponentType.Library, name!, {
    ...(group === undefined ? {} : { group }),
    version,
    bomRef: id,
    purl: `pkg:npm/${fullName.replace("@", "%40")}@${version}`,
    scope: isRequired ? Enums.ComponentScope.Required : Enums.ComponentScope.Excluded,
  });
  const [, hash] = INTEGRITY.exec(integrity ?? "") ?? [];
  if (hash) component.hashes.set(Enums.HashAlgorithm["SHA-512"], Buffer.from(hash, "base64").toString("hex"));
  const patch = lock.patchedDependencies?.[id];
  if (patch) component.properties.add(new Models.Property("basetide:patch", patch));
  return component;
}

type Kind = "dependencies" | "optionalDependencies" | "peerDependencies" | "devDependencies";
const KINDS: Kind[] = ["dependencies", "optionalDependencies", "peerDependencies"];

/** Paths of the packages that the service itself needs by dependencies of these kinds. */
function neededToRun(lock: LockFile, kinds: Kind[]): Set<string> {
  const found = new Set<string>();
  const open = directOf(lock, kinds);
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue;
    found.add(path);
    open.push(...neededBy(lock, path, kinds));
  }
  return found;
}

function directOf({ workspaces, packages }: LockFile, kinds: Kind[]): string[] {
  return Object.values(workspaces).flatMap((workspace) =>
    kinds.flatMap((kind) => Object.keys(workspace[kind] ?? {})).filter((name) => name in packages),
  );
}

/** Paths of a package's dependencies, resolved nearest first. Leaves out what is not installed. */
function neededBy({ packages }: LockFile, path: string, kinds: Kind[]): string[] {
  const facts = packages[path]![2] ?? {};
  const { optionalPeers = [] } = facts;
  const names = kinds.flatMap((kind) => Object.keys((kind !== "devDependencies" && facts[kind]) || {}));
  return names
    .filter((name) => !optionalPeers.includes(name))
    .flatMap((name) => {
      for (let within = path; ; within = parentOf(within)) {
        const candidate = within === "" ? name : `${within}/${name}`;
        if (candidate in packages) return [candidate];
        if (within === "") return [];
      }
    });
}

/** `a/@b/c` → `a`; `a` → "". */
function parentOf(path: string): string {
  return path.replace(/(?:^|\/)(?:@[^/]+\/)?[^/]+$/, "");
}

/** The bill of materials of this project. */
export function sbomOfProject(): string {
  const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");
  const base = { debian: PINNED, lockText: read("deploy/image/bun.lock") };
  return writeSbom(read("bun.lock"), JSON.parse(read("package.json")), base);
}

if (import.meta.main) {
  const file = process.argv[2] ?? join(repoRoot, "dist/sbom.cdx.json");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, sbomOfProject());
  console.log(file);
}
