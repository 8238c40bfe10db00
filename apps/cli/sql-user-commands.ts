/** `basetide sql-users …`: the SQL users of a base's database. */
import { Command } from "commander";
import { confirmed, formatFacts, formatTable, printResult } from "../../core/terminal";
import { findBase } from "./base-ref";
import { type ApiClient, type ApiSchemas, dataOf } from "./client";
import { type Common, command } from "./commands";
import { CliError } from "./failure";
import { openClient } from "./session";

type SqlUser = ApiSchemas["SqlUser"];
type Act = (client: ApiClient, path: { id: string; user: string }) => Promise<ApiSchemas["Credentials"]>;

const BASE = ["<base>", "id, Airtable id or name"] as const;
const USER = ["<user>", "its name or id"] as const;

interface AskedWrites {
  writes?: string;
  atOnce?: boolean;
}

const actions: Record<string, { description: string; act: Act }> = {
  credentials: {
    description: "how to connect as a SQL user",
    act: (client, path) =>
      dataOf(client.GET("/api/v1/bases/{id}/sql-users/{user}/credentials", { params: { path } })),
  },
  rotate: {
    description: "set a new password; the old one stops working",
    act: (client, path) =>
      dataOf(client.POST("/api/v1/bases/{id}/sql-users/{user}/rotate", { params: { path } })),
  },
};

export function addSqlUserCommands(program: Command): void {
  const users = new Command("sql-users").description(
    "SQL users of a base's database, each with its own password",
  );
  program.addCommand(users);
  users.addCommand(
    command("list", "the database's SQL users, without passwords")
      .argument(...BASE)
      .action(async (reference: string, { json = false }: Common) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        printResult(await listUsers(client, id), json, (all) =>
          formatTable(all.map(userRow), "No SQL users yet. Create one: `basetide sql-users create`"),
        );
      }),
  );
  users.addCommand(
    command("create", "create a SQL user, and print how to connect as it")
      .argument(...BASE)
      .argument("<name>", "what or who it is for, such as Metabase")
      .option("--writes <tables>", "tables that it may write with SQL: names, separated by commas")
      .option("--at-once", "what it writes is sent by each statement, and not at the end of the transaction")
      .action(async (reference: string, name: string, { json = false, ...asked }: Common & AskedWrites) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        const params = { path: { id } };
        const body = { name, ...writesOf(asked) };
        const made = await dataOf(client.POST("/api/v1/bases/{id}/sql-users", { params, body }));
        printResult(made, json, ({ credentials }) => credentialsText(credentials));
      }),
  );
  for (const [name, { description, act }] of Object.entries(actions)) {
    users.addCommand(
      command(name, description)
        .argument(...BASE)
        .argument(...USER)
        .action(async (reference: string, user: string, { json = false }: Common) => {
          const client = openClient();
          const { id } = await findBase(client, reference);
          const found = await findUser(client, id, user);
          printResult(await act(client, { id, user: found.id }), json, credentialsText);
        }),
    );
  }
  users.addCommand(
    command("revoke", "end the connections of a SQL user, and delete it")
      .argument(...BASE)
      .argument(...USER)
      .option("--yes", "do not ask")
      .action(async (reference: string, user: string, options: Common & { yes?: boolean }) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        const found = await findUser(client, id, user);
        if (!options.yes && !(await confirmed(`Revoke ${found.name}? Its connections end.`))) {
          throw new CliError("cancelled", "Nothing was revoked. Without a terminal, --yes confirms it.");
        }
        const path = { id, user: found.id };
        await client.DELETE("/api/v1/bases/{id}/sql-users/{user}", { params: { path } });
        printResult({ id: found.id, revoked: true }, options.json ?? false, () => `${found.name} is revoked`);
      }),
  );
}

function writesOf({ writes, atOnce = false }: AskedWrites) {
  if (writes === undefined) {
    if (atOnce) throw new CliError("invalid_request", "--at-once needs --writes with the tables");
    return {};
  }
  const tables = writes.split(",").map((name) => name.trim());
  return { writes: { mode: atOnce ? ("at_once" as const) : ("at_commit" as const), tables } };
}

async function listUsers(client: ApiClient, id: string): Promise<SqlUser[]> {
  return dataOf(client.GET("/api/v1/bases/{id}/sql-users", { params: { path: { id } } }));
}

/** @throws CliError `not_found`, with the names that there are */
async function findUser(client: ApiClient, baseId: string, reference: string): Promise<SqlUser> {
  const all = await listUsers(client, baseId);
  const wanted = reference.toLowerCase();
  const found = all.find(({ id, name }) => id === reference || name.toLowerCase() === wanted);
  if (found) return found;
  const names = all.map(({ name }) => name).join(", ");
  throw new CliError("not_found", `There is no SQL user ${reference}. The database has: ${names || "none"}`);
}

function userRow({ name, user, created_by, created_at, last_seen_at }: SqlUser) {
  return { name, user, created_by, created_at, last_seen_at: last_seen_at ?? "never" };
}

function credentialsText({ psql: _, ...rest }: ApiSchemas["Credentials"]): string {
  return formatFacts(rest);
}
