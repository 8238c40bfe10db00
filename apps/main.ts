/** Every role by its name, for containers and units: `bun apps/main.ts <role>`. */
import { readConfig } from "../core/config";
import { reachedAt } from "../core/http";
import { printable } from "../core/terminal";
import { ensureOptions, interpretStart, ROLE_OPTIONS } from "./runtime-options";

interface Role {
  about: string;
  start(): Promise<unknown>;
}

const roles: Record<string, Role> = {
  all: { about: "worker, proxy and console in one process", start: () => serve(() => import("./all/main")) },
  worker: { about: "syncs bases", start: () => serve(() => import("./worker/main")) },
  proxy: { about: "forwards requests to Airtable", start: () => serve(() => import("./proxy/main")) },
  console: { about: "pages and the management API", start: () => serve(() => import("./console/main")) },
  operator: {
    about: "the operator's commands: operator --help lists them",
    start: () => import("./operator/main"),
  },
  healthy: {
    about: "ends with 0 if a role that runs here is in good health, else with 1",
    start: async () => process.exit((await isHealthy()) ? 0 : 1),
  },
};
/** An answer that takes longer is none. */
const HEALTH_TIMEOUT_MS = 3_000;

ensureOptions(ROLE_OPTIONS[process.argv[2] ?? ""] ?? {});
const [role = ""] = process.argv.splice(2, 1);
if (["--help", "-h", "help"].includes(role)) {
  console.log(usage());
  process.exit(0);
}
const found = Object.hasOwn(roles, role) ? roles[role] : undefined;
if (!found) {
  console.error(`basetide: "${printable(role)}" is not a role.\n${usage()}`);
  process.exit(2);
}
await found.start();

function serve(start: () => Promise<unknown>): Promise<unknown> {
  interpretStart();
  return start();
}

function usage(): string {
  const rows = Object.entries(roles).map(([name, { about }]) => `  ${name.padEnd(10)}${about}`);
  const more =
    "The roles read their configuration from environment variables: docs/configuration.md. SIGTERM or Ctrl-C stops them.";
  return ["Usage: bun apps/main.ts <role>", "", "Roles:", ...rows, "", more].join("\n");
}

/** A container is one role on its own port, or all of them. */
async function isHealthy(): Promise<boolean> {
  const { workerPort, proxyPort, consolePort, host } = readConfig(process.env);
  const answers = [workerPort, proxyPort, consolePort].map(async (port) => {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const response = await fetch(`http://${reachedAt(host, "127.0.0.1")}:${port}/healthz`, { signal });
    if (!response.ok) throw new Error(`${response.status}`);
  });
  return Promise.any(answers).then(
    () => true,
    () => false,
  );
}
