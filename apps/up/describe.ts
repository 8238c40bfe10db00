/** What `bun run up` says when everything runs: addresses, and what to do next. */
import type { Up } from "./up";

export function describeUp(up: Up): string {
  const { config, sandbox, demo } = up;
  return [
    "",
    "Basetide is up.",
    row("console", `http://localhost:${up.consolePort}`),
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
    ...(up.isEmpty && !demo ? ["", "There is no account yet. Make one:", `  ${accountCommand(up)}`] : []),
    "",
  ].join("\n");
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(10)}${value}`;
}

/** The operator's commands find the embedded server by the file that its URL is kept in. */
function accountCommand(up: Up): string {
  const url = up.databaseUrlFile ? `DATABASE_URL=$(cat ${up.databaseUrlFile}) ` : "";
  return `${url}bun run operator account create --email you@example.org --password '…'`;
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = "";
  return url.href;
}
