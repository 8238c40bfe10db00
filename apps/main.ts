/**
 * Every role by its name, for containers: `worker`, `proxy`, `console`; `operator` with its own words; `healthy`, which
 * ends with 0 if whichever of them runs here is in good health.
 */
import { readConfig } from "../core/config";
import { reachedAt } from "../core/http";
import { printable } from "../core/terminal";
import { ensureOptions, WORKER_OPTIONS } from "./runtime-options";

const USAGE = `Usage: bun apps/main.ts <role>

  worker     runs sync jobs
  proxy      the write-through proxy
  console    the console and the management API
  operator   the operator's command line; operator --help lists its commands
  healthy    exits with 0 if one of these roles runs here in good health

The roles read their configuration from environment variables: docs/configuration.md. SIGTERM or Ctrl-C stops them.`;

const roles: Record<string, () => Promise<unknown>> = {
  worker: () => import("./worker/main"),
  proxy: () => import("./proxy/main"),
  console: () => import("./console/main"),
  operator: () => import("./operator/main"),
  healthy: async () => process.exit((await isHealthy()) ? 0 : 1),
};
/** An answer that takes longer is none. */
const HEALTH_TIMEOUT_MS = 3_000;

if (process.argv[2] === "worker") ensureOptions(WORKER_OPTIONS);
const [role = ""] = process.argv.splice(2, 1);
if (["--help", "-h", "help"].includes(role)) {
  console.log(USAGE);
  process.exit(0);
}
const start = roles[role];
if (!start) {
  console.error(`basetide: "${printable(role)}" is not a role. Roles: ${Object.keys(roles).join(", ")}`);
  process.exit(2);
}
await start();

/** A container is one role, on its own port. */
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
