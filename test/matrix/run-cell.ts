/**
 * Runs one cell of the matrix: the service on a control plane, and the life of a base in a hosted database and in a
 * customer's own.
 */
import { randomBytes } from "node:crypto";
import type { SandboxHandle } from "../../apps/sandbox/server";
import { type Cell, expectedOf, PURPOSES, type Purpose } from "./cells";
import { Life } from "./life";
import { openPlaces, type Places, SCHEMA, type Servers } from "./servers";
import { Service } from "./service";
import { check, type Step, Steps } from "./steps";

export interface Outcome {
  purpose: Purpose;
  /** `refused`: with the expected message. */
  verdict: "works" | "refused" | "failed";
  /** The message of a refusal or an error. */
  detail: string;
  steps: Step[];
}

export async function runCell(servers: Servers, sandbox: SandboxHandle, cell: Cell): Promise<Outcome[]> {
  await using places = await openPlaces(servers, cell);
  const steps: Record<Purpose, Steps> = {
    "control plane": new Steps(),
    "hosted cluster": new Steps(),
    "own database": new Steps(),
  };
  const { service, isOnCell } = await startService(servers, sandbox, places, steps);
  await using running = service;
  await live(running, sandbox, cell, places, servers, steps, isOnCell);
  return PURPOSES.map((purpose) => outcomeOf(purpose, cell, steps[purpose]));
}

/**
 * Starts the service on the cell's control plane and cluster. If it refuses one of them, a plain one is used instead.
 */
async function startService(
  { authorityFile }: Servers,
  sandbox: SandboxHandle,
  { controlUrl, clusterUrl, plainControlUrl, plainClusterUrl }: Places,
  { "control plane": control, "hosted cluster": hosted }: Record<Purpose, Steps>,
): Promise<{ service: Service; isOnCell: boolean }> {
  const secretKey = randomBytes(32).toString("base64");
  const start = (control: string, cluster: string) =>
    Service.start({ controlUrl: control, clusterUrl: cluster, sandbox, secretKey, authorityFile });
  const begun = performance.now();
  try {
    const both = await start(controlUrl, clusterUrl);
    control.add("starts", performance.now() - begun);
    return { service: both, isOnCell: true };
  } catch {
    // Which of the two it is becomes clear below.
  }
  const startAndStop = async (control: string, cluster: string) => {
    await using _service = await start(control, cluster);
  };
  await control.run("starts", () => startAndStop(controlUrl, plainClusterUrl));
  await hosted.run("starts", () => startAndStop(plainControlUrl, clusterUrl));
  const isOnCell = !control.failed;
  const service = await start(
    isOnCell ? controlUrl : plainControlUrl,
    hosted.failed ? plainClusterUrl : clusterUrl,
  );
  return { service, isOnCell };
}

async function live(
  service: Service,
  sandbox: SandboxHandle,
  cell: Cell,
  places: Places,
  servers: Servers,
  steps: Record<Purpose, Steps>,
  isOnCell: boolean,
): Promise<void> {
  const control = steps["control plane"];
  const account = await service.account("matrix");
  const given = {
    version: cell.version,
    service,
    account,
    sandbox,
    sslmode: cell.way === "tls alias" ? ("require" as const) : undefined,
    superuserUrl: (database: string) => servers.replicas.as("postgres", database),
  };
  // On Postgres 15, CREATEROLE can grant every role.
  const accepts = cell.rights === "owner" ? {} : { accept_privileges: true };
  const own = { kind: "external" as const, url: places.ownUrl, schema: SCHEMA, ...accepts };
  const lives = [
    new Life({ ...given, steps: steps["hosted cluster"], destination: { kind: "new" } }),
    new Life({ ...given, steps: steps["own database"], destination: own }),
  ];
  await Promise.all(lives.map((life) => life.live()));
  const found = await doctor(service);
  await control.run("doctor", async () => check(found.control === "", found.control));
  const hosted = steps["hosted cluster"];
  await hosted.run("doctor", async () => check(found.cluster === "", found.cluster));
  // Customers are not told the problem of the operator's server.
  hosted.explain(found.cluster);
  await control.run("other applications", async () => {
    const lost = await servers.canary();
    check(lost.length === 0, lost.join("; "));
  });
  if (isOnCell) {
    await control.run("restarts", () => service.restart());
    await Promise.all(
      lives.map((life) => life.given.steps.run("live edit after a restart", () => life.edit())),
    );
  }
  await Promise.all(lives.map((life) => life.end()));
  // Refusals are expected to be logged as complaints.
  if (Object.values(steps).every(({ failed }) => failed === undefined)) {
    await control.run("clean log", async () => {
      const complaints = service.complaints();
      check(complaints.length === 0, complaints.slice(0, 3).join("\n"));
    });
  }
}

/** Checks of `doctor` about the control plane and what is around it; the others are about clusters and their databases. */
const CONTROL_CHECKS = [
  ...["control_plane", "migrations", "secrets", "workers", "versions", "backup", "mail", "address", "disk"],
];

/** Returns the problems that doctor reports, with their remedies. */
async function doctor(service: Service): Promise<{ control: string; cluster: string }> {
  const said = await service.operator(["doctor", "--json"], { mayFail: true });
  const findings = JSON.parse(said) as { check: string; status: string; message: string; remedy: string }[];
  const problems = findings.filter(({ status }) => status === "problem");
  const words = (some: typeof problems) =>
    some.map(({ message, remedy }) => `${message}: ${remedy}`).join("; ");
  return {
    control: words(problems.filter(({ check }) => CONTROL_CHECKS.includes(check))),
    cluster: words(problems.filter(({ check }) => !CONTROL_CHECKS.includes(check))),
  };
}

function outcomeOf(purpose: Purpose, cell: Cell, steps: Steps): Outcome {
  const { failed, done } = steps;
  const expected = expectedOf(purpose, cell);
  if (!failed) return { purpose, verdict: "works", detail: "", steps: done };
  const detail = `${failed.name}: ${failed.error}`;
  const isWellRefused = !expected.works && expected.saying.every((words) => words.test(detail));
  return { purpose, verdict: isWellRefused ? "refused" : "failed", detail, steps: done };
}

/** Returns whether the outcome is the expected one of the cell. */
export function isExpected(cell: Cell, { purpose, verdict }: Outcome): boolean {
  return verdict === (expectedOf(purpose, cell).works ? "works" : "refused");
}
