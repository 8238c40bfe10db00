/** `basetide mcp`: how common AI clients connect; with `--stdio` it is the server of a client that starts a program. */
import type { Command } from "commander";
import { printResult } from "../../core/terminal";
import { type Common, command } from "./commands";
import { CliError } from "./failure";
import { bridge } from "./mcp-bridge";
import { currentUrl } from "./session";

const TOKEN = "BASETIDE_AGENT_TOKEN";

export function addMcpCommand(program: Command): void {
  program.addCommand(
    command("mcp", "print how AI clients connect to /mcp")
      .option("--stdio", `be a server on standard input and output, with the agent's token in ${TOKEN}`)
      .action(async ({ json = false, stdio }: Common & { stdio?: boolean }) => {
        const url = `${currentUrl()}/mcp`;
        if (!stdio) {
          const all = linesFor(url);
          printResult({ url, clients: all }, json, () => textOf(all));
          return;
        }
        const token = process.env[TOKEN];
        if (!token)
          throw new CliError(
            "not_logged_in",
            `Set ${TOKEN} to the token of an agent: \`basetide agents create\`, or the console's page Agents.`,
          );
        await bridge({ url, token, input: process.stdin, output: process.stdout });
      }),
  );
}

interface ClientLines {
  client: string;
  where: string;
  lines: string;
}

function linesFor(url: string): ClientLines[] {
  const headers = { Authorization: "Bearer bt_…" };
  const inJson = (value: object) => JSON.stringify(value, null, 2);
  const origin = new URL(url).origin;
  const program = { command: "basetide", args: ["mcp", "--stdio"] };
  const env = { BASETIDE_URL: origin, [TOKEN]: "bt_…" };
  return [
    {
      client: "Claude Code",
      where: "in a shell",
      lines: `claude mcp add --transport http basetide ${url} --header "Authorization: Bearer bt_…"`,
    },
    {
      client: "Claude Desktop, and others that start a program",
      where: "claude_desktop_config.json",
      lines: inJson({ mcpServers: { basetide: { ...program, env } } }),
    },
    {
      client: "Cursor",
      where: ".cursor/mcp.json",
      lines: inJson({ mcpServers: { basetide: { url, headers } } }),
    },
    {
      client: "VS Code",
      where: ".vscode/mcp.json",
      lines: inJson({ servers: { basetide: { type: "http", url, headers } } }),
    },
    {
      client: "Codex",
      where: "~/.codex/config.toml",
      lines: `[mcp_servers.basetide]\nurl = "${url}"\nbearer_token_env_var = "${TOKEN}"`,
    },
  ];
}

function textOf(all: ClientLines[]): string {
  const parts = all.map(({ client, where, lines }) => `${client} (${where}):\n\n${lines}`);
  return [
    "In place of bt_…, use the token of an agent: `basetide agents create`, or the console's page Agents.",
    ...parts,
  ].join("\n\n");
}
