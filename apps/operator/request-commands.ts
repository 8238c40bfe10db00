/**
 * `request list|approve|deny`, `database set-writable|set-connections|sql-users`: the requests of customers, and the
 * databases that hold replicas.
 */
import { type Command, InvalidArgumentError } from "commander";
import {
  approveRequest,
  denyRequest,
  getDatabase,
  listAllSqlUsers,
  listRequests,
  type OperatorRequest,
  setConnectionLimit,
  setDatabaseWritable,
} from "../../core/control/placement";
import { formatFacts, formatTable, printResult } from "../../core/terminal";
import { withContext } from "./context";
import { wholeNumber } from "./whole-number";

const decisions = {
  approve: {
    description: "carry out the request if a command can, and close it",
    decide: approveRequest,
  },
  deny: { description: "close the request", decide: denyRequest },
};

export function addRequestCommands(program: Command): void {
  const request = program.command("request").description("requests of customers to the operator");
  request
    .command("list")
    .description("list open requests, or all of them")
    .option("--all", "include closed requests", false)
    .option("--json", "print JSON", false)
    .action(async (options: { all: boolean; json: boolean }) => {
      const requests = await withContext(({ db }) => listRequests(db, options.all ? {} : { state: "open" }));
      printResult(requests.map(toRow), options.json, (rows) => formatTable(rows, "No requests"));
    });
  for (const [verb, { description, decide }] of Object.entries(decisions)) {
    request
      .command(verb)
      .description(description)
      .argument("<id>")
      .option("--answer <text>", "the answer shown to the customer")
      .option("--json", "print JSON", false)
      .action(async (id: string, options: { answer?: string; json: boolean }) => {
        const decided = await withContext((ctx) => decide(ctx, id, { by: "cli", answer: options.answer }));
        printResult(toRow(decided), options.json, formatFacts);
      });
  }
}

export function addDatabaseCommands(program: Command): void {
  const database = program.command("database").description("databases that hold replicas");
  database
    .command("set-connections")
    .description("set how many connections a hosted database's role may open")
    .argument("<id>", "id of the database: dat_…")
    .argument("<count>", "1 to 10000", wholeNumber(1, 10_000))
    .option("--json", "print JSON", false)
    .action(async (id: string, count: number, options: { json: boolean }) => {
      const { name, role, connections } = await withContext(async (ctx) =>
        setConnectionLimit(ctx, await getDatabase(ctx.db, id), count),
      );
      printResult({ id, name, role, connections }, options.json, formatFacts);
    });
  database
    .command("sql-users")
    .description(
      "list SQL users of hosted databases, with who created them and when they were last connected",
    )
    .argument("[id]", "id of the database: dat_…; default: all")
    .option("--json", "print JSON", false)
    .action(async (id: string | undefined, options: { json: boolean }) => {
      const users = await withContext(async ({ db }) => {
        if (id !== undefined) await getDatabase(db, id);
        return listAllSqlUsers(db, id);
      });
      printResult(users.map(sqlUserRow), options.json, (rows) => formatTable(rows, "No SQL users"));
    });
  database
    .command("set-writable")
    .description("allow a database's role to create tables and views, or revoke that right")
    .argument("<id>", "id of the database: dat_…")
    .argument("[on|off]", "default: on", parseSwitch, true)
    .option("--json", "print JSON", false)
    .action(async (id: string, isWritable: boolean, options: { json: boolean }) => {
      const answer = await withContext(async (ctx) => {
        const {
          name,
          role,
          isWritable: is,
        } = await setDatabaseWritable(ctx, await getDatabase(ctx.db, id), isWritable);
        return { id, name, role, is_writable: is };
      });
      printResult(answer, options.json, formatFacts);
    });
}

function toRow(request: OperatorRequest) {
  return {
    id: request.id,
    account: request.email,
    requested_by: request.requestedBy,
    kind: request.kind,
    subject: request.region ?? request.databaseId,
    state: request.state,
    created_at: request.createdAt.toISOString(),
    message: request.message,
    answer: request.answer,
  };
}

function sqlUserRow(user: Awaited<ReturnType<typeof listAllSqlUsers>>[number]) {
  return {
    id: user.id,
    database: user.databaseId,
    account: user.email,
    name: user.name,
    user: user.role,
    created_by: user.createdBy,
    created_at: user.createdAt.toISOString(),
    last_seen_at: user.lastSeenAt?.toISOString() ?? null,
  };
}

function parseSwitch(text: string): boolean {
  if (text === "on" || text === "off") return text === "on";
  throw new InvalidArgumentError("must be on or off");
}
