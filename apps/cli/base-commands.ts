/** `basetide bases …`: list, show, create, sync, pause, resume. */
import type { Command } from "commander";
import { formatFacts, formatTable, printResult } from "../../core/terminal";
import { type ApiBase, findBase } from "./base-ref";
import { type ApiClient, type ApiSchemas, apiFacts, dataOf } from "./client";
import { type Common, command, promptSecret } from "./commands";
import { CliError } from "./failure";
import { addSelectionCommand } from "./selection-command";
import { openClient } from "./session";

interface CreateOptions extends Common {
  platform: string;
  workspace?: string;
  databaseId?: string;
  schema?: string;
  only?: string;
  acceptPrivileges?: boolean;
}

export function addBasesCommand(program: Command): void {
  const bases = program.command("bases").description("connected bases");
  bases.addCommand(
    command("list", "the account's bases").action(async ({ json = false }: Common) => {
      const all = await dataOf(openClient().GET("/api/v1/bases"));
      printResult(all, json, () =>
        formatTable(all.map(baseRow), "No bases yet. Connect one: `basetide bases create`"),
      );
    }),
  );
  bases.addCommand(
    command("show", "one base")
      .argument("<base>", "id, Airtable id or name")
      .action(async (reference: string, { json = false }: Common) => {
        const base = await findBase(openClient(), reference);
        printResult(base, json, baseText);
      }),
  );
  bases.addCommand(
    command("create", "connect a base; Airtable's API key is AIRTABLE_API_KEY, or read from standard input")
      .argument("<airtable-id>", "app…")
      .option("--platform <platform>", "the platform", apiFacts.defaultPlatform)
      .option("--workspace <id>", "the workspace whose cap includes its calls")
      .option(
        "--accept-privileges",
        "use DESTINATION_URL although its role has more rights than needed, such as a superuser's",
      )
      .option("--database-id <id>", "one of the account's databases; with --schema")
      .option("--only <tables>", "copy only these tables: names or ids in Airtable, separated by commas")
      .option("--schema <name>", "a schema in that database, or in the database of DESTINATION_URL")
      .action(async (baseId: string, options: CreateOptions) => {
        const apiKey = process.env.AIRTABLE_API_KEY || (await promptSecret("Airtable API key"));
        const client = openClient();
        const source = { platform: options.platform, api_key: apiKey, base_id: baseId };
        const body: ApiSchemas["NewBase"] = {
          ...source,
          ...destinationOf(options),
          ...(options.only ? { selection: await onlyTables(client, source, options.only) } : {}),
          ...(options.workspace ? { workspace_id: options.workspace } : {}),
        };
        const base = await dataOf(client.POST("/api/v1/bases", { body }));
        printResult(base, options.json ?? false, baseText);
      }),
  );
  addSelectionCommand(bases);
  bases.addCommand(
    command("sync", "sync now")
      .argument("<base>", "id, Airtable id or name")
      .action(async (reference: string, { json = false }: Common) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        const base = await dataOf(client.POST("/api/v1/bases/{id}/sync", { params: { path: { id } } }));
        printResult(base, json, ({ name }) => `Sync of ${name} is requested`);
      }),
  );
  for (const [name, paused, about] of [
    ["pause", true, "stop syncing; the tables stay readable"],
    ["resume", false, "sync again"],
  ] as const) {
    bases.addCommand(
      command(name, about)
        .argument("<base>", "id, Airtable id or name")
        .action(async (reference: string, { json = false }: Common) => {
          const client = openClient();
          const { id } = await findBase(client, reference);
          const base = await dataOf(
            client.PATCH("/api/v1/bases/{id}", { params: { path: { id } }, body: { paused } }),
          );
          printResult(base, json, (one) => `${one.name} is ${one.state}`);
        }),
    );
  }
}

/** The selection of these tables and no others, now or later. @throws CliError `not_found` */
async function onlyTables(
  client: ApiClient,
  source: ApiSchemas["SourceBaseKey"],
  list: string,
): Promise<ApiSchemas["Selection"]> {
  const available = await dataOf(client.POST("/api/v1/source-tables", { body: source }));
  const tables = list.split(",").map((part) => {
    const wanted = part.trim();
    const found =
      available.find(({ table_id }) => table_id === wanted) ?? available.find(({ name }) => name === wanted);
    const known = available.map(({ name }) => name).join(", ");
    if (!found) throw new CliError("not_found", `There is no table ${wanted}. The base has: ${known}`);
    return { table_id: found.table_id, copied: true };
  });
  return { new_tables: "ignore", tables };
}

/** The URL of a customer's own database has a password, so it comes from the environment. */
function destinationOf({
  databaseId,
  schema,
  acceptPrivileges,
}: CreateOptions): Pick<ApiSchemas["NewBase"], "destination"> {
  const url = process.env.DESTINATION_URL;
  if (databaseId) {
    if (!schema) throw new CliError("usage", "--database-id needs --schema.");
    return { destination: { kind: "existing", database_id: databaseId, schema } };
  }
  if (url) {
    const accepts = acceptPrivileges ? { accept_privileges: true } : {};
    return { destination: { kind: "external", url, ...(schema ? { schema } : {}), ...accepts } };
  }
  if (schema) throw new CliError("usage", "--schema needs --database-id or DESTINATION_URL.");
  return {};
}

function baseRow({ id, name, base_id, state, indicator, tables, sync }: ApiBase) {
  return {
    id,
    name,
    airtable_id: base_id,
    state,
    indicator: indicator.color,
    tables: tables.length,
    completed_at: sync.completed_at,
  };
}

function baseText(base: ApiBase): string {
  const { indicator, database, error, open_issue_count } = base;
  const about = formatFacts({
    ...baseRow(base),
    indicator: `${indicator.color}: ${indicator.reason}`,
    database: `${database.name}, schema ${database.schema}, on ${database.host}:${database.port}`,
    issues: open_issue_count,
    error: error && `${error.code}: ${error.message}`,
  });
  const rows = base.tables.map(({ name, source_name, records }) => ({
    table: name,
    airtable_table: source_name,
    records,
  }));
  return `${about}\n\n${formatTable(rows, "No tables yet")}`;
}
