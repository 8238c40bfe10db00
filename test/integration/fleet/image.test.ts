/**
 * The image that `bun run image` builds without a container engine: its bytes, and its root file system, started as an
 * engine would: another root, read-only, as a user without rights.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { type BuiltImage, buildImage, CACHE } from "../../../deploy/image/build";
import {
  currentDebian,
  type DebianPackages,
  fetchDebian,
  NotOnMirror,
  PINNED,
} from "../../../deploy/image/debian";
import { freshDatabase } from "../../support/database";
import { whyNotDebian } from "../../support/debian-packages";
import { isWholeDelivery } from "../../support/delivery";
import { freePort } from "../../support/free-port";
import { componentsOfImage } from "../../support/image-components";
import { whyNoRegistry } from "../../support/install-pinned";
import { until } from "../../support/poll";
import { repoRoot } from "../../support/source-files";

const MAX_BYTES = 120_000_000;
const TIMEOUT_MS = 300_000;

let folder: string;
let image: BuiltImage;
let root: string;

const packages = available();
const debian = typeof packages === "string" ? {} : packages;

/** The pinned packages, or the current ones if the mirror no longer has those; or why no image can be built here. */
function available(): DebianPackages | string {
  // `containers.test.ts` is the short form: the same files, started on this machine's root.
  if (!isWholeDelivery) return "`bun run delivery` runs it";
  const why = whyNotDebian ?? whyNoRegistry();
  if (why !== undefined) return why;
  mkdirSync(CACHE, { recursive: true });
  try {
    fetchDebian(PINNED, CACHE);
    return PINNED;
  } catch (error) {
    if (!(error instanceof NotOnMirror)) throw error;
    const current = currentDebian(CACHE);
    if (current === undefined) return "Debian's mirror does not answer";
    console.warn(`${error.message} The test goes on with the current versions.`);
    return current;
  }
}

describe("the image", () => {
  beforeEach(({ skip }) => {
    if (typeof packages === "string") skip(packages);
  });
  beforeAll(async () => {
    if (typeof packages === "string") return;
    folder = mkdtempSync(join(tmpdir(), "basetide-oci-"));
    image = await buildImage(join(folder, "first"), debian, 1_700_000_000);
    root = join(folder, "root");
    mkdirSync(root);
    for (const layer of image.layers) {
      const { success, stderr } = Bun.spawnSync(["tar", "-xzf", layer, "-C", root]);
      expect(success, stderr.toString()).toBe(true);
    }
  }, TIMEOUT_MS);
  afterAll(() => folder && rmSync(folder, { recursive: true, force: true }));

  test("has the same digest in another build", { timeout: TIMEOUT_MS }, async () => {
    const again = await buildImage(join(folder, "second"), debian, 1_700_000_000);
    expect(again.digest).toBe(image.digest);
  });

  test("has at most 120 MB", () => {
    expect(image.bytes).toBeLessThan(MAX_BYTES);
    expect(image.bytes).toBeGreaterThan(MAX_BYTES / 10);
  });

  test("runs as a user without rights, as all roles by default, and says what it is", () => {
    const { version } = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
    const read = (digest: string) =>
      JSON.parse(readFileSync(join(image.layout, "blobs", digest.replace(":", "/")), "utf8"));
    const index = JSON.parse(readFileSync(join(image.layout, "index.json"), "utf8"));
    expect(index.manifests[0].digest).toBe(image.digest);
    const manifest = read(image.digest);
    const { config, created, rootfs } = read(manifest.config.digest);
    expect(config).toMatchObject({ User: "1000:1000", Cmd: ["all"], WorkingDir: "/app" });
    expect(config.Labels["org.opencontainers.image.version"]).toBe(version);
    expect(created).toBe("2023-11-14T22:13:20.000Z");
    expect(rootfs.diff_ids).toHaveLength(manifest.layers.length);
    for (const name of [
      "apps/main.ts",
      "sql/control/migrations/0001_start.sql",
      "node_modules/elysia/package.json",
    ])
      expect(statSync(join(root, "app", name)).mode & 0o222, `${name} belongs to root`).toBe(0o200);
    expect(statSync(join(root, "usr/share/doc/libc6/copyright")).size).toBeGreaterThan(0);
  });

  test("has the packages of Debian and the Bun that the bill of materials says", () => {
    const status = join(root, "var/lib/dpkg/status.d");
    const installed = readdirSync(status).map((name) => {
      const text = readFileSync(join(status, name), "utf8");
      return `${name}@${/^Version: (.+)$/m.exec(text)![1]}`;
    });
    const listed = componentsOfImage().map(({ name, version, purl }) => ({ id: `${name}@${version}`, purl }));
    const ofDebian = listed.filter(({ purl }) => purl.startsWith("pkg:deb/")).map(({ id }) => id);
    // Without the pinned ones on the mirror, the image has others.
    if (packages === PINNED) expect(installed.sort()).toEqual(ofDebian.sort());
    const version = Bun.spawnSync([join(root, "usr/local/bin/bun"), "--version"])
      .stdout.toString()
      .trim();
    expect(listed.map(({ id }) => id)).toContain(`bun-linux-x64-baseline@${version}`);
  });

  /** Runs Bun in the image, as an engine with a read-only root does, with the network of this machine. */
  function runInImage(words: string[], env: Record<string, string>) {
    const script = `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && mount -t tmpfs tmpfs "$0/tmp" &&
      mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
      exec unshare --root "$0" --wd /app --setgid 1000 --setuid 1000 /usr/local/bin/bun "$@"`;
    return Bun.spawn(["unshare", "--mount", "sh", "-c", script, root, ...words], {
      env: { PATH: process.env.PATH!, ...env },
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  test("its root starts and is ready, without a right to write and without root", {
    timeout: TIMEOUT_MS,
  }, async ({ skip }) => {
    const canMount = Bun.spawnSync(["unshare", "--mount", "true"]).success;
    skip(!canMount, "this user may not create a mount namespace");
    const tries = `for (const path of ["/app/x", "/etc/x", "/tmp/x"])
      await Bun.write(path, "x").then(() => console.log(path, "written"), (error) => console.log(path, error.code));
      console.log(process.getuid(), process.getgid())`;
    const writer = runInImage(["-e", tries], {});
    const written = await new Response(writer.stdout).text();
    expect(written, await new Response(writer.stderr).text()).toBe(
      "/app/x EROFS\n/etc/x EROFS\n/tmp/x written\n1000 1000\n",
    );

    await using database = await freshDatabase();
    const names = ["CONSOLE_PORT", "PROXY_PORT", "WORKER_PORT"];
    const ports = await Promise.all(names.map(async (name) => [name, String(await freePort())] as const));
    const child = runInImage(["apps/main.ts", "all"], {
      ...{ NODE_ENV: "production", HOST: "127.0.0.1", LOG_LEVEL: "warn", DATA_DIR: "/tmp" },
      ...{ DATABASE_URL: database.url, REPLICA_URL: inject("clusterUrl") },
      SECRET_KEY: Buffer.alloc(32, 1).toString("base64"),
      ...Object.fromEntries(ports),
    });
    const errors = new Response(child.stderr).text();
    try {
      for (const [name, port] of ports) {
        const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
        await until(isReady, { what: `${name} is ready`, retryErrors: true, timeoutMs: 30_000 });
      }
      // Pages, their styles and the documentation are all in the image.
      const page = await fetch(`http://127.0.0.1:${ports[0]![1]}/docs/operations`);
      expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("Operating Basetide")]);
      child.kill("SIGTERM");
      expect(await child.exited, await errors).toBe(0);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
  });
});
