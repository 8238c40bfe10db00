/**
 * The way of an alert to the operator: the rules and the configurations of `compose.yaml` in a real Prometheus and a real
 * Alertmanager, of Debian's packages.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { debianPackages } from "../../support/debian-packages";
import { isWholeDelivery } from "../../support/delivery";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { startReceiver } from "../../support/receiver";
import { repoRoot } from "../../support/source-files";

const canMount = Bun.which("unshare") !== null && Bun.spawnSync(["unshare", "--mount", "true"]).success;
const TIMEOUT_MS = 240_000;

const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");

/** The contents of Debian's package, which is not installed: an installation would start it. */
function unpacked(name: string, path: string, folder: string): string {
  const target = join(folder, name);
  expect(Bun.spawnSync(["dpkg-deb", "--extract", path, target]).exitCode).toBe(0);
  return join(target, "usr/bin");
}

/** Alertmanager's configuration with the variable set, as compose sets it. */
function alertmanagerConfig(webhookUrl: string): string {
  const { content } = parse(read("compose.yaml"), { merge: true }).configs.alertmanager;
  const set = content.replace(/\$\{ALERT_WEBHOOK_URL:-[^}]*\}/, webhookUrl);
  expect(set).not.toContain("${");
  return set;
}

test("a rule that fires reaches ALERT_WEBHOOK_URL; a role that no process has is reported, also of the role `all`", {
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!isWholeDelivery, "`bun run delivery` runs it");
  skip(!canMount, "this user may not create a mount namespace");
  const packages = debianPackages(["prometheus", "prometheus-alertmanager"]);
  if (typeof packages === "string") return skip(packages);
  const folder = mkdtempSync(join(tmpdir(), "basetide-alerts-"));
  await using receiver = startReceiver();
  const [prometheusPort, alertmanagerPort] = [await freePort(), await freePort()];
  // A process of all roles, but no worker that is alive.
  let roles = ["worker", "proxy", "console"];
  using metrics = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch() {
      const started = roles.map((role) => `process_start_time_seconds{role="${role}"} 1\n`);
      return new Response(`basetide_fleet_workers 0\n${started.join("")}`);
    },
  });
  const children: Bun.Subprocess[] = [];
  const start = (...command: string[]) => {
    children.push(
      Bun.spawn(command, {
        cwd: folder,
        stdout: "ignore",
        stderr: Bun.file(join(folder, `${children.length}.log`)),
      }),
    );
  };
  try {
    const prometheus = unpacked("prometheus", packages.prometheus!, folder);
    const alertmanager = unpacked("prometheus-alertmanager", packages["prometheus-alertmanager"]!, folder);

    writeFileSync(
      join(folder, "alertmanager.yml"),
      alertmanagerConfig(receiver.url()).replace(/group_wait: 10s/, "group_wait: 0s\n  group_interval: 1s"),
    );
    const scrape = parse(read("docs/monitoring/prometheus.yml"));
    expect(scrape.alerting.alertmanagers[0].dns_sd_configs[0]).toMatchObject({
      names: ["alertmanager"],
      port: 9093,
    });
    // Addresses that only containers can resolve, and times that a test cannot wait for.
    scrape.global = { scrape_interval: "1s", evaluation_interval: "1s" };
    scrape.alerting.alertmanagers = [{ static_configs: [{ targets: [`127.0.0.1:${alertmanagerPort}`] }] }];
    const targets = [`127.0.0.1:${metrics.port}`];
    scrape.scrape_configs = [{ job_name: "basetide", static_configs: [{ targets }] }];
    writeFileSync(join(folder, "prometheus.yml"), stringify(scrape));
    writeFileSync(
      join(folder, "alerts.yml"),
      read("docs/monitoring/alerts.yml").replaceAll(/for: \w+/g, "for: 1s"),
    );
    const checked = Bun.spawnSync([join(prometheus, "promtool"), "check", "config", "prometheus.yml"], {
      cwd: folder,
    });
    expect(checked.exitCode, `${checked.stdout}${checked.stderr}`).toBe(0);

    for (const name of ["data", "state"]) mkdirSync(join(folder, name));
    // Debian's Alertmanager reads its templates from /usr/share only.
    const share = join(folder, "prometheus-alertmanager/usr/share");
    start(
      ...["unshare", "--mount", "sh", "-c", `mount --bind ${share} /usr/share && exec "$@"`, "sh"],
      join(alertmanager, "prometheus-alertmanager"),
      "--config.file=alertmanager.yml",
      `--storage.path=${join(folder, "state")}`,
      `--web.listen-address=127.0.0.1:${alertmanagerPort}`,
      "--cluster.listen-address=",
    );
    start(
      join(prometheus, "prometheus"),
      "--config.file=prometheus.yml",
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${prometheusPort}`,
    );
    const messages = () => receiver.received.map(({ body }) => JSON.parse(body));
    const firingOf = (name: string) => () =>
      messages().find((one) => one.groupLabels.alertname === name && one.status === "firing");
    const firing = await until(firingOf("BasetideNoWorkers"), { what: "the alert", timeoutMs: 60_000 });
    expect(firing.alerts[0].annotations).toEqual({
      summary: "No worker is alive: nothing is synced",
      runbook: "docs/runbook.md#basetidenoworkers",
    });

    const stateOf = async (alert: string) => {
      const response = await fetch(`http://127.0.0.1:${prometheusPort}/api/v1/rules`);
      const { data } = (await response.json()) as {
        data: { groups: { rules: { name: string; state: string }[] }[] };
      };
      return data.groups[0]!.rules.find(({ name }) => name === alert)!.state;
    };
    const isCalm = async () => (await stateOf("BasetideServiceGone")) === "inactive";
    await until(isCalm, { what: "no alert of a role that one process has", timeoutMs: 60_000 });
    roles = ["worker", "console"];
    const gone = await until(firingOf("BasetideServiceGone"), { what: "the other alert", timeoutMs: 60_000 });
    expect(
      gone.alerts.map(({ annotations }: { annotations: { summary: string } }) => annotations.summary),
    ).toEqual(["No proxy is running"]);
  } catch (error) {
    const logs = children.map((_, index) => readFileSync(join(folder, `${index}.log`), "utf8").slice(-2000));
    throw new Error([error, ...logs].join("\n"), { cause: error });
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map((child) => child.exited));
    rmSync(folder, { recursive: true, force: true });
  }
});
