/**
 * The chart of `deploy/helm`, rendered by Helm for each set of values in its `ci` folder, and compared with what Kubernetes
 * accepts and with what the programs need. No cluster runs here.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { configVariables, readConfig } from "../../../core/config";
import { faultsOf, helm, type Manifest, render, whyNoHelm } from "../../support/helm/helm";
import { repoRoot } from "../../support/source-files";

const chart = join(repoRoot, "deploy/helm/basetide");
const valueSets = readdirSync(join(chart, "ci")).sort();
const PORTS = { worker: 4200, proxy: 4000, console: 3000 };

/** Renders a set of values of the `ci` folder. */
function rendered(set: string, words: string[] = []): Manifest[] {
  return render(chart, ["--values", join(chart, "ci", set), ...words]);
}

function ofKind(manifests: Manifest[], kind: string): Manifest[] {
  return manifests.filter((manifest) => manifest.kind === kind);
}

/** The pods that a set of manifests starts: those of deployments, of the job and of the test. */
function podsOf(manifests: Manifest[]): Manifest[] {
  return manifests.flatMap((manifest) => {
    if (manifest.kind === "Pod") return [manifest];
    return manifest.spec.template?.spec.containers ? [manifest.spec.template] : [];
  });
}

function matches(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

const whyNot = whyNoHelm();

describe("the chart", () => {
  beforeEach(({ skip }) => skip(whyNot !== undefined, whyNot));

  test("has the version of the program, and six sets of values that Helm finds no fault with", () => {
    const { version } = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
    const about = readFileSync(join(chart, "Chart.yaml"), "utf8");
    expect(about).toContain(`\nversion: ${version}\nappVersion: ${version}\n`);
    expect(valueSets).toHaveLength(6);
    for (const set of valueSets) {
      const found = helm(["lint", "--strict", chart, "--values", join(chart, "ci", set)]);
      expect(found, set).toContain("0 chart(s) failed");
    }
  });

  test.for(valueSets)("renders only what Kubernetes accepts, with %s", async (set) => {
    const faults = await Promise.all(rendered(set).map(faultsOf));
    expect(faults.flat()).toEqual([]);
  });

  test("a wrong type, an unknown field and an unknown kind would be found", async () => {
    const [deployment] = ofKind(rendered("minimal-values.yaml"), "Deployment");
    deployment!.spec.replicas = "two";
    deployment!.spec.template.spec.containers[0].imagePulPolicy = "Always";
    expect(await faultsOf(deployment!)).toEqual([
      expect.stringContaining("spec/replicas must be integer"),
      "Deployment.spec.template.spec.containers[0].imagePulPolicy is unknown",
    ]);
    expect(await faultsOf({ apiVersion: "apps/v1", kind: "Deploiment" })).toEqual([
      "apps/v1 Deploiment does not exist",
    ]);
  });

  test.for(valueSets)("connects its objects with each other, with %s", (set) => {
    const all = rendered(set);
    const templates = ofKind(all, "Deployment").map(({ spec }) => spec.template);
    for (const { spec } of ofKind(all, "Deployment"))
      expect(matches(spec.selector.matchLabels, spec.template.metadata.labels)).toBe(true);
    for (const { metadata, spec } of ofKind(all, "Service")) {
      const selected = templates.filter((template) => matches(spec.selector, template.metadata.labels));
      expect(selected.length, metadata.name).toBeGreaterThan(0);
      for (const { targetPort } of spec.ports)
        for (const template of selected)
          expect(template.spec.containers[0].ports.map((port: Manifest) => port.name)).toContain(targetPort);
    }
    const services = ofKind(all, "Service").map(({ metadata }) => metadata.name);
    for (const { spec } of ofKind(all, "Ingress"))
      expect(services).toContain(spec.rules[0].http.paths[0].backend.service.name);
    const deployments = ofKind(all, "Deployment").map(({ metadata }) => metadata.name);
    for (const { spec } of ofKind(all, "HorizontalPodAutoscaler"))
      expect(deployments).toContain(spec.scaleTargetRef.name);
    for (const kind of ["PodDisruptionBudget", "NetworkPolicy"])
      for (const { metadata, spec } of ofKind(all, kind)) {
        const { matchLabels } = spec.selector ?? spec.podSelector;
        const selected = templates.filter((template) => matches(matchLabels, template.metadata.labels));
        expect(selected, `${kind} ${metadata.name}`).toHaveLength(1);
      }
    for (const { spec } of ofKind(all, "ServiceMonitor")) {
      const selected = ofKind(all, "Service").filter(({ metadata }) =>
        matches(spec.selector.matchLabels, metadata.labels),
      );
      expect(selected.map((service) => service.spec.ports[0].name)).toEqual([spec.endpoints[0].port]);
    }
  });

  test.for(valueSets)(
    "starts every container confined, with an environment that the programs accept, with %s",
    (set) => {
      const pods = podsOf(rendered(set));
      expect(pods.length).toBeGreaterThan(2);
      for (const { metadata, spec } of pods) {
        expect(spec.automountServiceAccountToken).toBe(false);
        expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
        for (const container of spec.containers) {
          expect(container.securityContext, metadata.name).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
          const names = container.env.map(({ name }: Manifest) => name);
          expect(names.filter((name: string) => !(name in configVariables))).toEqual([]);
          expect(new Set(names).size, "no variable is set twice").toBe(names.length);
          const secret = { DATABASE_URL: "postgres://a:b@c/d", REPLICA_URL: "postgres://a:b@e/f" };
          const key = Buffer.alloc(32).toString("base64");
          const secrets: Record<string, string> = { ...secret, SECRET_KEY: key, SECRET_KEY_PREVIOUS: key };
          const env = container.env.map(({ name, value }: Manifest) => [name, value ?? secrets[name]]);
          const config = readConfig(Object.fromEntries(env));
          expect(config).toMatchObject({ consolePort: 3000, proxyPort: 4000, workerPort: 4200 });
          expect(config.consoleUrl).toBe("https://console.example.com");
        }
      }
    },
  );

  test("probes each role on its own port, and gives it the time to end", () => {
    for (const { spec } of ofKind(rendered("minimal-values.yaml"), "Deployment")) {
      const { containers, terminationGracePeriodSeconds } = spec.template.spec;
      const [{ name, args, ports, readinessProbe, livenessProbe }] = containers;
      expect(args).toEqual([name]);
      expect(ports).toContainEqual({ name, containerPort: PORTS[name as keyof typeof PORTS] });
      expect(livenessProbe.httpGet).toEqual({ path: "/healthz", port: name });
      // Proxies serve clients without the control plane.
      expect(readinessProbe.httpGet.path).toBe(name === "proxy" ? "/healthz" : "/readyz");
      expect(terminationGracePeriodSeconds).toBe(35);
    }
    const [all, ...others] = ofKind(rendered("all-in-one-values.yaml"), "Deployment");
    expect(others).toEqual([]);
    const [{ args, ports }] = all!.spec.template.spec.containers;
    expect(args).toEqual(["all"]);
    for (const [name, containerPort] of Object.entries(PORTS))
      expect(ports).toContainEqual({ name, containerPort });
  });

  test("opens the endpoint for SQL writes where it is asked for, at a service whose address the processes know", () => {
    const manifests = rendered("everything-values.yaml");
    const service = ofKind(manifests, "Service").find(({ metadata }) => metadata.name.endsWith("-write"))!;
    expect(service.spec).toMatchObject({
      type: "LoadBalancer",
      ports: [{ port: 4300, targetPort: "write" }],
    });
    const open = ofKind(manifests, "NetworkPolicy").flatMap(({ spec }) =>
      spec.ingress.filter(({ ports }: Manifest) => ports[0].port === "write"),
    );
    expect(open).toMatchObject([{ from: [{ ipBlock: { cidr: "10.0.0.0/8" } }] }]);
    for (const { spec } of ofKind(manifests, "Deployment")) {
      const { env } = spec.template.spec.containers[0];
      expect(env).toContainEqual({ name: "WRITE_PORT", value: "4300" });
      const host = env.find(({ name }: Manifest) => name === "WRITE_HOST").value;
      expect(host).toMatch(new RegExp(`^${service.metadata.name}\\..+\\.svc$`));
    }
    const minimal = JSON.stringify(rendered("minimal-values.yaml"));
    expect(minimal).not.toContain("WRITE_PORT");
    // As with --reuse-values after an upgrade from a chart that had no such value.
    expect(JSON.stringify(rendered("minimal-values.yaml", ["--set", "write=null"]))).toBe(minimal);
  });

  test("migrates before the roles start, and tests what an installation needs", () => {
    const manifests = rendered("minimal-values.yaml");
    const [job] = ofKind(manifests, "Job");
    expect(job!.metadata.annotations["helm.sh/hook"]).toBe("pre-install,pre-upgrade");
    expect(job!.spec.template.spec.containers[0].args).toEqual(["operator", "server", "migrate"]);
    const [pod] = ofKind(manifests, "Pod");
    expect(pod!.metadata.annotations["helm.sh/hook"]).toBe("test");
    const doctor = pod!.spec.containers.find(({ name }: Manifest) => name === "doctor");
    expect(doctor.args).toEqual(["operator", "doctor"]);
  });

  test("an ingress passes on the proxy's requests and answers unbuffered", () => {
    const ingresses = ofKind(rendered("ingress-values.yaml"), "Ingress");
    const proxy = ingresses.find(({ metadata }) => metadata.name.endsWith("-proxy"))!;
    expect(proxy.spec.rules[0].host).toBe("proxy.example.com");
    expect(proxy.spec.tls).toEqual([{ hosts: ["proxy.example.com"], secretName: "proxy-tls" }]);
    expect(proxy.metadata.annotations).toMatchObject({
      "nginx.ingress.kubernetes.io/proxy-buffering": "off",
      "nginx.ingress.kubernetes.io/proxy-request-buffering": "off",
    });
  });

  test.for([
    ["nothing", [], "consoleUrl"],
    ["an address with a path", ["--set", "consoleUrl=https://a.example.com/path"], "consoleUrl"],
    ["a misspelled setting", ["--set", "worker.replica=2"], "replica"],
    ["a secret among the plain variables", ["--set", "env.SECRET_KEY=abc"], "SECRET_KEY"],
    [
      "a metric of workers for the console",
      ["--set", "console.autoscaling.enabled=true,console.autoscaling.metric=share"],
      "share is for workers only",
    ],
  ] as const)("refuses %s, and names it", ([, words, named]) => {
    const minimal = ["--values", join(chart, "ci/minimal-values.yaml")];
    expect(() => render(chart, words.length === 0 ? [] : [...minimal, ...words])).toThrow(named);
  });
});
