/**
 * Generates a software bill of materials (CycloneDX 1.6, JSON) of all packages in the lock file: names, versions,
 * hashes, dependencies, and which ones only development needs. The same lock file gives the same bytes.
 *
 *     bun run sbom [file] default dist/sbom.cdx.json
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";
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

const INTEGRITY = /^sha512-(.+)$/;

/** The bill of materials, as text. */
export function writeSbom(
  lockText: string,
  project: { name: string; version: string; license: string },
): string {
  const lock = Bun.JSONC.parse(lockText) as LockFile;
  const needed = neededToRun(lock);
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
    components.set(known.bomRef.value!, known);
    bom.components.add(known);
  }
  const at = (path: string) => components.get(lock.packages[path]![0])!;
  for (const path of directOf(lock, true)) root.dependencies.add(at(path).bomRef);
  for (const path of Object.keys(lock.packages))
    for (const needs of neededBy(lock, path)) at(path).dependencies.add(at(needs).bomRef);
  const normalizing = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(normalizing).serialize(bom, { sortLists: true, space: 2 })}\n`;
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

/** Paths of the packages that the service itself needs; the others are for development. */
function neededToRun(lock: LockFile): Set<string> {
  const found = new Set<string>();
  const open = directOf(lock, false);
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue;
    found.add(path);
    open.push(...neededBy(lock, path));
  }
  return found;
}

function directOf({ workspaces, packages }: LockFile, withDevelopment: boolean): string[] {
  return Object.values(workspaces).flatMap(({ dependencies, optionalDependencies, devDependencies }) =>
    Object.keys({
      ...dependencies,
      ...optionalDependencies,
      ...(withDevelopment ? devDependencies : {}),
    }).filter((name) => name in packages),
  );
}

/** Paths of a package's dependencies, resolved nearest first. Leaves out what is not installed. */
function neededBy({ packages }: LockFile, path: string): string[] {
  const {
    dependencies,
    optionalDependencies,
    peerDependencies,
    optionalPeers = [],
  } = packages[path]![2] ?? {};
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => !optionalPeers.includes(name));
  return [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers].flatMap((name) => {
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

if (import.meta.main) {
  const file = process.argv[2] ?? join(repoRoot, "dist/sbom.cdx.json");
  const project = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, writeSbom(readFileSync(join(repoRoot, "bun.lock"), "utf8"), project));
  console.log(file);
}
