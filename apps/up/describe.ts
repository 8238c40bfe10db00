/** The text that `bun run up` prints when everything runs: addresses, and next steps. */
import { reachedAt } from "../../core/http";
import { printableValue } from "../../core/terminal";
import type { Demo } from "./demo";
import type { SandboxAddress } from "./sample-sandbox";
import type { Up } from "./up";

export function describeUp(up: Up): string {
  const { config, sandbox, demo } = up;
  const at = (port: number) => `http://${reachedAt(config.host)}:${port}`;
  const consoleUrl = at(up.consolePort);
  const lines = [
    "",
    row("console", consoleUrl),
    row("proxy", `${at(up.proxyPort)}/api.airtable.com/v0/…`),
    row("worker", at(up.workerPort)),
    row(
      "metrics",
      up.metricsPort === undefined
        ? "/metrics of each process, from this machine only"
        : `http://${reachedAt(config.metricsHost ?? config.host)}:${up.metricsPort}/metrics`,
    ),
    row(
      "postgres",
      up.databaseUrlFile ? `${withoutPassword(config.databaseUrl)} (embedded)` : "DATABASE_URL",
    ),
    ...(sandbox
      ? [row("sandbox", sandbox.url), row("API key", `${sandbox.apiKey} (gives access to its bases)`)]
      : []),
    ...(demo
      ? [
          row("account", `${demo.email}${demo.password ? ` with password ${demo.password}` : ""}`),
          row("token", demo.token),
          "",
          ...demo.bases.flatMap((base) => [`${base.name}:`, `  ${base.psql}`]),
          ...(sandbox ? tryIt(up, sandbox, demo) : []),
        ]
      : []),
    "",
    ...box([
      "Basetide is running.",
      "",
      up.isEmpty && !demo
        ? `There is no account yet. Create one: ${consoleUrl}/signup`
        : `Open ${consoleUrl}`,
      `To share it with others: ${consoleUrl}/docs/operations#share-it`,
      "To stop it: Ctrl-C",
    ]),
    "",
  ];
  // Names come from the source; none of them may add a line of its own.
  return lines.map(printableValue).join("\n");
}

/** A one-minute tour of the product. */
function tryIt({ config, proxyPort }: Up, sandbox: SandboxAddress, { bases }: Demo): string[] {
  const live = bases.find((base) => base.sourceBaseId === sandbox.liveBaseId);
  if (!live) return [];
  const address = `http://${reachedAt(config.host)}:${proxyPort}/api.airtable.com/v0/${live.sourceBaseId}/Tasks`;
  return [
    "",
    `Simulated users are editing ${live.name}. After its first sync, which takes some seconds, a change is in SQL about a second later:`,
    `  ${live.psql} -c "select name, status, created_time from tasks order by created_time desc limit 5"`,
    "Write through the proxy. SQL shows the record before the response arrives:",
    `  curl -s ${address} -H 'Authorization: Bearer ${sandbox.apiKey}' -H 'Content-Type: application/json' -d '{"records":[{"fields":{"Name":"Mine"}}]}'`,
    `  ${live.psql} -c "select id, name, created_time from tasks where name = 'Mine'"`,
  ];
}

function box(lines: string[]): string[] {
  const width = Math.max(...lines.map((line) => line.length));
  const edge = "─".repeat(width + 4);
  return [`┌${edge}┐`, ...lines.map((line) => `│  ${line.padEnd(width)}  │`), `└${edge}┘`];
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(10)}${value}`;
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = "";
  return url.href;
}
