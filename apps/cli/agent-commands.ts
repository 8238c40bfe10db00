/** `basetide agents …`: the AI clients that may read the account's bases and propose changes. */
import { Command } from "commander";
import { confirmed, formatFacts, formatTable, printResult } from "../../core/terminal";
import { findBase } from "./base-ref";
import { type ApiClient, type ApiSchemas, dataOf } from "./client";
import { type Common, command } from "./commands";
import { CliError } from "./failure";
import { openClient } from "./session";

type Agent = ApiSchemas["Agent"];

const AGENT = ["<agent>", "its name or id"] as const;

interface NewAgentOptions extends Common {
  base: string[];
  hide?: string;
  private?: boolean;
  propose?: boolean;
}

export function addAgentCommands(program: Command): void {
  const agents = new Command("agents").description(
    "AI clients that read bases by SQL, and propose changes which a member approves",
  );
  program.addCommand(agents);
  agents.addCommand(
    command("list", "the account's agents").action(async ({ json = false }: Common) => {
      const all = await dataOf(openClient().GET("/api/v1/agents"));
      printResult(all, json, () =>
        formatTable(all.map(agentRow), "No agents yet. Create one: `basetide agents create`"),
      );
    }),
  );
  agents.addCommand(
    command("create", "create an agent, and print its token, which cannot be read again")
      .argument("<name>", "the client and its person, such as Claude")
      .requiredOption("--base <base...>", "bases that it may read: ids, Airtable ids or names")
      .option("--hide <fields>", "fields that it may not read, as table.column, separated by commas")
      .option("--private", "it may also read e-mail addresses, phone numbers, people and attachments")
      .option("--propose", "it may propose changes")
      .action(async (name: string, { json = false, ...asked }: NewAgentOptions) => {
        const client = openClient();
        const hidden = asked.hide?.split(",").map((field) => field.trim()) ?? [];
        if (hidden.length > 0 && asked.base.length > 1)
          throw new CliError(
            "usage",
            "--hide is for one base. Create the agent without, and change it later",
          );
        const bases = [];
        for (const reference of asked.base) {
          const { id } = await findBase(client, reference);
          bases.push({ base_id: id, hidden_fields: hidden, private_fields: asked.private ?? false });
        }
        const body = { name, bases, may_propose: asked.propose ?? false };
        const made = await dataOf(client.POST("/api/v1/agents", { body }));
        printResult(made, json, agentText);
      }),
  );
  agents.addCommand(
    command("token", "give an agent a new token; the old one stops working")
      .argument(...AGENT)
      .action(async (reference: string, { json = false }: Common) => {
        const client = openClient();
        const path = { id: (await findAgent(client, reference)).id };
        const renewed = await dataOf(client.POST("/api/v1/agents/{id}/token", { params: { path } }));
        printResult(renewed, json, agentText);
      }),
  );
  agents.addCommand(
    command("calls", "the latest calls of an agent, newest first")
      .argument(...AGENT)
      .action(async (reference: string, { json = false }: Common) => {
        const client = openClient();
        const path = { id: (await findAgent(client, reference)).id };
        const calls = await dataOf(client.GET("/api/v1/agents/{id}/calls", { params: { path } }));
        printResult(calls, json, () => formatTable(calls, "No calls yet"));
      }),
  );
  agents.addCommand(
    command("revoke", "end the access of an agent, and delete it")
      .argument(...AGENT)
      .option("--yes", "do not ask")
      .action(async (reference: string, options: Common & { yes?: boolean }) => {
        const client = openClient();
        const { id, name } = await findAgent(client, reference);
        if (!options.yes && !(await confirmed(`Revoke ${name}? Its token stops working.`)))
          throw new CliError("cancelled", "Nothing was revoked. Without a terminal, --yes confirms it.");
        await client.DELETE("/api/v1/agents/{id}", { params: { path: { id } } });
        printResult({ id, revoked: true }, options.json ?? false, () => `${name} is revoked`);
      }),
  );
}

function agentText({ agent, token, url }: ApiSchemas["CreatedAgent"]): string {
  return formatFacts({ id: agent.id, name: agent.name, url, token });
}

/** @throws CliError `not_found`, with the names that there are */
async function findAgent(client: ApiClient, reference: string): Promise<Agent> {
  const all = await dataOf(client.GET("/api/v1/agents"));
  const wanted = reference.toLowerCase();
  const found = all.find(({ id, name }) => id === reference || name.toLowerCase() === wanted);
  if (found) return found;
  const names = all.map(({ name }) => name).join(", ");
  throw new CliError("not_found", `There is no agent ${reference}. The account has: ${names || "none"}`);
}

function agentRow({ id, name, bases, may_propose, rules, last_used_at }: Agent) {
  return {
    id,
    name,
    reads: bases.map((base) => base.name).join(", "),
    proposes: may_propose ? "yes" : "no",
    rules: rules.length,
    last_used_at: last_used_at ?? "never",
  };
}
