/**
 * Builds the image of the service without a container engine: Debian's C library and Bun as one layer, the service as
 * another. The same sources give the same bytes, on any machine.
 *
 *     bun run image             writes dist/image (an OCI layout) and dist/basetide-<version>-image.tar (the same as one file)
 *     bun run image --update    takes Debian's current packages from now on
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { currentDebian, type DebianPackages, fetchDebian, PINNED } from "./debian";
import { stageApp } from "./stage";

const root = join(import.meta.dirname, "../..");
/** Keeps the packages of Debian. */
export const CACHE = join(root, "node_modules/.cache/basetide-image");

/** The user of the service: without a name, a home or a shell of the machine. */
const USER = 1000;
/** The C library's tables for other character sets, and what only people read; licenses stay. */
const UNUSED_OF_DEBIAN = [/\/gconv\//, /^\.\/usr\/share\/(?!doc\/[^/]+\/copyright$)/];

export interface BuiltImage {
  /** The folder of the OCI layout. */
  layout: string;
  /** Of the manifest: what registries and engines call the image's digest. */
  digest: string;
  /** As it is pushed and pulled: the layers are compressed. */
  bytes: number;
  /** The paths of the layers, from bottom to top. */
  layers: string[];
}

interface Blob {
  mediaType: string;
  digest: string;
  size: number;
}

/**
 * Writes the image as an OCI layout.
 *
 * @param debian the packages of the base
 * @param epoch when the image says it was created, in seconds since 1970
 */
export async function buildImage(layout: string, debian: DebianPackages, epoch: number): Promise<BuiltImage> {
  const work = mkdtempSync(join(tmpdir(), "basetide-image-"));
  try {
    rmSync(layout, { recursive: true, force: true });
    const blobs = join(layout, "blobs/sha256");
    mkdirSync(blobs, { recursive: true });
    const layers = [layBase(join(work, "base"), debian), layApp(join(work, "app"))].map((folder) =>
      packLayer(folder, blobs),
    );
    const config = addBlob(blobs, "application/vnd.oci.image.config.v1+json", {
      ...{ created: new Date(epoch * 1000).toISOString(), architecture: "amd64", os: "linux" },
      config: imageConfig(),
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      history: ["Debian's C library, and Bun", "Basetide"].map((comment) => ({ comment })),
    });
    const image = addBlob(blobs, "application/vnd.oci.image.manifest.v1+json", {
      ...{ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config },
      layers: layers.map(({ blob }) => blob),
    });
    const annotations = { "org.opencontainers.image.ref.name": manifest.version };
    writeFileSync(join(layout, "oci-layout"), `${JSON.stringify({ imageLayoutVersion: "1.0.0" })}\n`);
    writeFileSync(
      join(layout, "index.json"),
      `${JSON.stringify({ schemaVersion: 2, manifests: [{ ...image, annotations }] })}\n`,
    );
    return {
      ...{ layout, digest: image.digest, layers: layers.map(({ blob }) => pathOf(blobs, blob)) },
      bytes: [image, config, ...layers.map(({ blob }) => blob)].reduce((sum, { size }) => sum + size, 0),
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function imageConfig() {
  const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");
  const variables = [...dockerfile.matchAll(/^ENV (.+)$/gm)].flatMap(([, line]) => line!.split(" "));
  return {
    User: `${USER}:${USER}`,
    Env: ["PATH=/usr/local/bin:/usr/bin:/bin", ...variables],
    Entrypoint: ["bun", "apps/main.ts"],
    Cmd: ["all"],
    WorkingDir: "/app",
    ExposedPorts: { "3000/tcp": {}, "4000/tcp": {}, "4200/tcp": {} },
    Labels: {
      "org.opencontainers.image.title": manifest.name,
      "org.opencontainers.image.description": manifest.description,
      "org.opencontainers.image.version": manifest.version,
      "org.opencontainers.image.licenses": manifest.license,
    },
  };
}

/** Debian's packages, Bun, and the few files that a program expects of a system. */
function layBase(folder: string, debian: DebianPackages): string {
  mkdirSync(folder);
  mkdirSync(CACHE, { recursive: true });
  for (const path of fetchDebian(debian, CACHE)) {
    const excluded = join(dirname(folder), "excluded");
    // An excluded folder would take along what is in it.
    const list = run("dpkg-deb", "--contents", path).split("\n");
    const files = list.filter((line) => !line.startsWith("d"));
    const names = files.map((line) => line.slice(line.indexOf("./")).replace(/ -> .*/, ""));
    writeFileSync(
      excluded,
      names.filter((name) => UNUSED_OF_DEBIAN.some((one) => one.test(name))).join("\n"),
    );
    const tar = join(dirname(folder), "package.tar");
    writeFileSync(tar, Bun.spawnSync(["dpkg-deb", "--fsys-tarfile", path]).stdout);
    run(
      "tar",
      "--extract",
      "--no-same-owner",
      `--exclude-from=${excluded}`,
      "--anchored",
      "-f",
      tar,
      "-C",
      folder,
    );
    // Scanners of images read which packages it has.
    const { name, control } = controlOf(path);
    const status = join(folder, "var/lib/dpkg/status.d");
    mkdirSync(status, { recursive: true });
    writeFileSync(join(status, name), control);
  }
  for (const name of ["app", "dev", "proc", "sys", "tmp"]) mkdirSync(join(folder, name), { recursive: true });
  chmodSync(join(folder, "tmp"), 0o1777);
  const files = {
    "etc/passwd": `root:x:0:0::/:/usr/sbin/nologin\nbun:x:${USER}:${USER}::/app:/usr/sbin/nologin\n`,
    "etc/group": `root:x:0:\nbun:x:${USER}:\n`,
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, "usr/local/bin"), { recursive: true });
  const packages = join(dirname(folder), "bun");
  mkdirSync(packages);
  for (const name of ["package.json", "bun.lock"])
    cpSync(join(import.meta.dirname, name), join(packages, name));
  runIn(packages, process.execPath, "install", "--frozen-lockfile", "--ignore-scripts");
  const { version } = JSON.parse(
    readFileSync(join(packages, "node_modules/@oven/bun-linux-x64-baseline/package.json"), "utf8"),
  );
  if (version !== manifest.engines.bun) throw new Error("deploy/image has another Bun than package.json");
  const bun = join(folder, "usr/local/bin/bun");
  cpSync(join(packages, "node_modules/@oven/bun-linux-x64-baseline/bin/bun"), bun);
  chmodSync(bun, 0o755);
  return folder;
}

function controlOf(path: string): { name: string; control: string } {
  const control = run("dpkg-deb", "--field", path);
  return { name: /^Package: (.+)$/m.exec(control)![1]!, control };
}

/** The service, as `apps/bundle.ts` makes it of its sources and the packages that it runs with. */
function layApp(folder: string): string {
  const sources = `${folder}-sources`;
  mkdirSync(sources);
  runIn(sources, process.execPath, ...stageApp(sources));
  runIn(sources, process.execPath, "apps/bundle.ts", join(folder, "app"));
  return folder;
}

/** Nothing of this machine may be in a layer: the order of files, their owners, their times. */
function packLayer(folder: string, blobs: string): { blob: Blob; diffId: string } {
  const tar = `${folder}.tar`;
  const options = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const modes = ["--mode=u=rwX,go=rX"];
  const pax = ["--format=posix", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"];
  run(
    "tar",
    "--create",
    ...options,
    ...(folder.endsWith("base") ? [] : modes),
    ...pax,
    "-f",
    tar,
    "-C",
    folder,
    ".",
  );
  const diffId = `sha256:${hashOf(readFileSync(tar))}`;
  run("gzip", "--no-name", tar);
  const content = readFileSync(`${tar}.gz`);
  return { blob: putBlob(blobs, "application/vnd.oci.image.layer.v1.tar+gzip", content), diffId };
}

function addBlob(blobs: string, mediaType: string, value: unknown): Blob {
  return putBlob(blobs, mediaType, Buffer.from(JSON.stringify(value)));
}

function putBlob(blobs: string, mediaType: string, content: Buffer): Blob {
  const blob = { mediaType, digest: `sha256:${hashOf(content)}`, size: content.length };
  writeFileSync(pathOf(blobs, blob), content);
  return blob;
}

function pathOf(blobs: string, { digest }: Blob): string {
  return join(blobs, digest.slice("sha256:".length));
}

function hashOf(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

function run(...command: string[]): string {
  return runIn(root, ...command);
}

function runIn(cwd: string, ...command: string[]): string {
  const env = { ...process.env, LC_ALL: "C", GZIP: "" };
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd, env });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString();
}

/** When the sources were last changed: SOURCE_DATE_EPOCH, or the time of the last commit. */
function sourceEpoch(): number {
  if (process.env.SOURCE_DATE_EPOCH) return Number(process.env.SOURCE_DATE_EPOCH);
  const { success, stdout } = Bun.spawnSync(["git", "log", "-1", "--format=%ct"], { cwd: root });
  return success ? Number(stdout.toString()) : 0;
}

if (import.meta.main) {
  mkdirSync(CACHE, { recursive: true });
  if (process.argv.includes("--update")) {
    const current = currentDebian(CACHE);
    if (!current) throw new Error("Debian's mirror does not answer");
    writeFileSync(join(import.meta.dirname, "debian.json"), `${JSON.stringify(current, null, 2)}\n`);
    console.log(current);
  } else {
    const layout = join(root, "dist/image");
    const { digest, bytes } = await buildImage(layout, PINNED, sourceEpoch());
    const archive = join(root, `dist/basetide-${manifest.version}-image.tar`);
    run("tar", "--create", "--sort=name", "-f", archive, "-C", layout, "blobs", "index.json", "oci-layout");
    console.log(
      `${archive}: ${digest}, ${(bytes / 1e6).toFixed(1)} MB to pull, ${statSync(archive).size} bytes`,
    );
  }
}
