/** What `bun run up` says when everything runs: addresses, and what to do next. */
import type { Up } from "./up";

export function describeUp(up: Up): string {
  const { config, sandbox, demo } = up;
  const consoleUrl = `http://localhost:${up.consolePort}`;
  return [
    "",
    "Basetide is up.",
    row("console", consoleUrl),
    row("proxy", `http://localhost:${up.proxyPort}/api.airtable.com/v0/…`),
    row("worker", `http://localhost:${up.workerPort}/metrics`),
    row(
      "postgres",
      up.databaseUrlFile ? `${withoutPassword(config.databaseUrl)} (embedded)` : "DATABASE_URL",
    ),
    ...(sandbox ? [row("sandbox", sandbox.url), row("API key", `${sandbox.apiKey} (opens its bases)`)] : []),
    ...(demo
      ? [
          row("account", `${demo.email}${demo.password ? ` with password ${demo.password}` : ""}`),
          row("token", demo.token),
          "",
          ...demo.bases.flatMap((base) => [`${base.name}:`, `  ${base.psql}`]),
        ]
      : []),
    ...(up.isEmpty && !demo ? ["", `There is no account yet. Make one: ${consoleUrl}/signup`] : []),
    "",
  ].join("\n");
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(10)}${value}`;
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = "";
  return url.href;
}
