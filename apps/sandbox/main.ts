/**
 * Runs the sandbox as a process. Flags, each with its environment variable:
 *
 * - `--port`, `SANDBOX_PORT` (4100): the port to listen on;
 * - `--network`, `SANDBOX_NETWORK`: a simulated network in front of it, over TLS: `80±20`, or JSON
 *   (`network/profile.ts`);
 * - `--tls`/`--no-tls`, `SANDBOX_TLS` (`true`, `false`): TLS without a network, or a network without TLS;
 * - `--ca-file`, `SANDBOX_CA_FILE`: the file for the certificate of its authority, which is created at each start.
 *   Clients that are started with NODE_EXTRA_CA_CERTS=<that file> trust it.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { parseProfile } from "./network";
import { type SandboxOptions, startSandbox } from "./server";

try {
  const { caFile, ...options } = readOptions();
  const sandbox = await startSandbox(options);
  if (caFile) await writeFile(caFile, sandbox.authority);
  console.log(`Sandbox: ${sandbox.url}\nAPI key: ${sandbox.key}\nControl: ${sandbox.controlUrl}`);
  if (caFile) console.log(`Trust it with: NODE_EXTRA_CA_CERTS=${caFile}`);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  await sandbox.stop();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

function readOptions(): SandboxOptions & { caFile: string | undefined } {
  const { env } = process;
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      port: { type: "string", default: env.SANDBOX_PORT || "4100" },
      network: { type: "string", default: env.SANDBOX_NETWORK ?? "" },
      tls: { type: "boolean", ...(env.SANDBOX_TLS ? { default: env.SANDBOX_TLS === "true" } : {}) },
      "ca-file": { type: "string", default: env.SANDBOX_CA_FILE ?? "" },
    },
  });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(`SANDBOX_PORT must be a port number, not "${values.port}".`);
  return {
    port,
    network: values.network ? parseProfile(values.network) : undefined,
    tls: values.tls,
    caFile: values["ca-file"] || undefined,
  };
}
