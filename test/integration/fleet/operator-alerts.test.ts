/**
 * The way of an alert to the operator: the rules and the configurations of `compose.yaml` in a real Prometheus and a real
 * Alertmanager, of Debian's packages.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { download } from "../../../deploy/image/debian";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { startReceiver } from "../../support/receiver";
import { repoRoot } from "../../support/source-files";

const isDebian = Bun.which("apt-get") !== null && process.arch === "x64";
const canMount = Bun.which("unshare") !== null && Bun.spawnSync(["unshare", "--mount", "true"]).success;
const TIMEOUT_MS = 240_000;

const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");

/** The contents of Debian's package, which is not installed: an installation would start it. */
function unpacked(name: string, folder: string): string {
  const path = download(name, folder);
  if (!path) throw new Error(`Debian's mirror has no ${name}`);
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

test.skipIf(!isDebian || !canMount)(
  "a rule that fires reaches ALERT_WEBHOOK_URL",
  {
    timeout: TIMEOUT_MS,
  },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "basetide-alerts-"));
    await using receiver = startReceiver();
    const [prometheusPort, alertmanagerPort] = [await freePort(), await freePort()];
    // A process of each role that is up, but no worker that is alive.

    using metrics = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: () => new Response("basetide_fleet_workers 0\n"),
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
      const prometheus = unpacked("prometheus", folder);
      const alertmanager = unpacked("prometheus-alertmanager", folder);

      writeFileSync(
        join(folder, "alertmanager.yml"),
        alertmanagerConfig(receiver.url()).replace(/: 10s/, ": 0s"),
      );
      const scrape = parse(read("docs/monitoring/prometheus.yml"));
      expect(scrape.alerting.alertmanagers[0].dns_sd_configs[0]).toMatchObject({
        names: ["alertmanager"],
        port: 9093,
      });
      // Addresses that only containers can resolve, and times that a test cannot wait for.
      scrape.global = { scrape_interval: "1s", evaluation_interval: "1s" };
      scrape.alerting.alertmanagers = [{ static_configs: [{ targets: [`127.0.0.1:${alertmanagerPort}`] }] }];
      const roles = ["worker", "proxy", "console"].map((service) => ({
        ...{ targets: [`127.0.0.1:${metrics.port}`], labels: { service } },
      }));
      scrape.scrape_configs = [{ job_name: "basetide", static_configs: roles }];
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
      const ofNoWorkers = (status: string) => () =>
        messages().find((one) => one.groupLabels.alertname === "BasetideNoWorkers" && one.status === status);
      const firing = await until(ofNoWorkers("firing"), { what: "the alert", timeoutMs: 60_000 });
      expect(firing.alerts[0].annotations).toEqual({
        summary: "No worker is alive: nothing is synced",
        runbook: "docs/runbook.md#basetidenoworkers",
      });
    } catch (error) {
      const logs = children.map((_, index) =>
        readFileSync(join(folder, `${index}.log`), "utf8").slice(-2000),
      );
      throw new Error([error, ...logs].join("\n"), { cause: error });
    } finally {
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(children.map((child) => child.exited));
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
