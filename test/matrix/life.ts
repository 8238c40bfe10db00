/**
 * The life of a base from connection to deletion, through a customer's interfaces: the console's API, Airtable and its
 * proxied API, and SQL.
 */
import postgres from "postgres";
import type { SandboxHandle } from "../../apps/sandbox/server";
import type { Account, ApiBase, NewBase } from "../security/account";
import { columnsByComment, compareToSource } from "../support/compare-to-source";
import { until } from "../support/poll";
import type { PostgresVersion } from "../support/servers/postgres-versions";
import type { Service } from "./service";
import { makeSourceBase, type SourceBase } from "./source-base";
import { check, type Steps } from "./steps";

/** For a busy machine. */
const TIMEOUT_MS = 60_000;
const FORBIDDEN = "42501";

export interface LifeOptions {
  version: PostgresVersion;
  service: Service;
  account: Account;
  sandbox: SandboxHandle;
  steps: Steps;
  destination: NonNullable<NewBase["destination"]>;
  /** What the URL from the console needs for this kind of connection to the server. */
  sslmode: "require" | undefined;
  /** As a superuser on the replica's server, for observation. */
  superuserUrl(database: string): string;
}

export class Life {
  readonly source: SourceBase;
  readonly schema: string;
  #id = "";
  #base: ApiBase | undefined;
  #sql: postgres.Sql | undefined;

  constructor(readonly given: LifeOptions) {
    const { destination, sandbox } = given;
    this.source = makeSourceBase(sandbox, destination.kind);
    this.schema = destination.kind === "external" ? (destination.schema ?? "public") : "public";
  }

  get #isHosted(): boolean {
    return this.given.destination.kind === "new";
  }

  get #control() {
    return this.given.sandbox.control;
  }

  /** The customer's connection. */
  get #reader(): postgres.Sql {
    return this.#sql!;
  }

  /** The name of a table or view of the base, for use in a statement. */
  #named(name: string) {
    return this.#reader(`${this.schema}.${name}`);
  }

  /** Connects the base, changes everything that can be changed, and leaves it syncing. */
  async live(): Promise<void> {
    const { steps, account, sandbox } = this.given;
    await steps.run("connect", async () => {
      const { id } = await account.connect({
        platform: "airtable",
        api_key: sandbox.key,
        base_id: this.source.id,
        destination: this.given.destination,
      });
      this.#id = id;
      await this.#completed(null);
      await this.#open();
    });
    await steps.run("rows", () => this.#same());
    await steps.run("live edit", () => this.edit());
    await steps.run("write-through", () => this.#write());
    await steps.run("views of the customer", () => this.#makeViews());
    await steps.run("field added", async () => {
      this.#control.addField(this.source.id, "Projects", { name: "Extra", type: "singleLineText" });
      this.#edit("Projects", this.source.projects[0]!, { Extra: "12" });
      await this.#same();
    });
    await steps.run("field renamed", async () => {
      this.#control.renameField(this.source.id, "Projects", "Extra", "Size");
      await this.#same();
    });
    await steps.run("old names of fields and tables", () => this.#oldNames());
    await steps.run("field retyped", async () => {
      this.#control.retypeField(this.source.id, "Projects", "Size", "number", { precision: 0 });
      await this.#same();
    });
    await steps.run("links as text, and back", () => this.#changeLinks());
    await steps.run("link views, history", () => this.#extras());
    await steps.run("resync", async () => {
      const { sync } = await account.base(this.#id);
      await account.ask("POST", `bases/${this.#id}/sync`);
      await this.#completed(sync.completed_at);
      await this.#same();
    });
    await steps.run("views of the customer are there", () => this.#viewsFollow());
    if (!this.#isHosted) return;
    await steps.run("reader cannot write", () => this.#cannotWrite());
    await steps.run("reader cannot open another database", () => this.#cannotCross());
    await steps.run("SQL user", () => this.#sqlUser());
    await steps.run("password rotated", () => this.#rotate());
    await steps.run("second base in the database", () => this.#addSecond());
  }

  /** Edits at the source, and waits for the change. */
  async edit(): Promise<void> {
    this.#edit("Tasks", this.source.tasks[0]!, { Name: `Edited ${crypto.randomUUID()}` });
    await this.#same();
  }

  /** Deletes what is left, and checks what remains afterwards. */
  async end(): Promise<void> {
    const { steps, superuserUrl } = this.given;
    await steps.run("deleted", async () => {
      await this.#sql?.end({ timeout: 1 });
      const { name } = this.#base!.database;
      for (const { id } of await this.#sharing()) await this.#delete(id);
      if (!this.#isHosted) return;
      await ask(superuserUrl("postgres"), (sql) =>
        until(async () => (await sql`select from pg_database where datname = ${name}`).length === 0, {
          what: "the database is gone",
          timeoutMs: TIMEOUT_MS,
        }),
      );
    });
    await this.#sql?.end({ timeout: 1 });
  }

  /** A database in which a pooler still has a connection is busy for a moment. */
  async #delete(id: string): Promise<void> {
    const done = async () => {
      const { status, text } = await this.given.account.api("DELETE", `bases/${id}`);
      check(status === 204 || status === 404 || status === 503, `DELETE bases/${id}: ${status} ${text}`);
      return status !== 503;
    };
    await until(done, { what: `${id} is deleted`, timeoutMs: TIMEOUT_MS, intervalMs: 500 });
  }

  /** Bases in this life's database. */
  async #sharing(): Promise<ApiBase[]> {
    const all = await this.given.account.ask<ApiBase[]>("GET", "bases");
    return all.filter(({ database }) => database.id === this.#base!.database.id);
  }

  async #open(): Promise<void> {
    const { account, sslmode, destination } = this.given;
    await this.#sql?.end({ timeout: 1 });
    this.#base = await account.base(this.#id);
    const external = destination.kind === "external";
    const url = external ? destination.url : withMode(await account.credentials(this.#id), sslmode);
    this.#sql = pool(url);
  }

  /** Waits for a sync that completes after `before`. */
  async #completed(before: string | null): Promise<void> {
    let failing: unknown = null;
    const isDone = async () => {
      const base = await this.given.account.base(this.#id);
      // It may be temporary: on a busy machine, the control plane is slow.
      failing = base.error;
      const { completed_at } = base.sync;
      return completed_at !== null && (before === null || completed_at > before);
    };
    const wait = { what: "a sync completes", timeoutMs: TIMEOUT_MS, intervalMs: 50 };
    await until(isDone, wait).catch((error: Error) => {
      throw new Error(`${error.message}; ${JSON.stringify(failing)}`);
    });
  }

  /** Checks that SQL equals the source. */
  async #same(): Promise<void> {
    let last: string[] = [];
    await until(
      async () => {
        const compared = await compareToSource(this.#reader, this.source.dump(), this.schema);
        last = compared.differences;
        return last.length === 0;
      },
      { what: "SQL equals the source", timeoutMs: TIMEOUT_MS, intervalMs: 50, retryErrors: true },
    ).catch(async (error: Error) => {
      const { error: failing } = await this.given.account.base(this.#id);
      throw new Error([error.message, ...last, ...(failing ? [JSON.stringify(failing)] : [])].join("; "));
    });
  }

  #edit(table: string, id: string, fields: Record<string, unknown>): void {
    this.#control.updateRecords(this.source.id, table, [{ id, fields }]);
  }

  async #write(): Promise<void> {
    const { service, sandbox } = this.given;
    const amount = 1234.5;
    const response = await fetch(
      `${service.proxyUrl}/${this.source.id}/Projects/${this.source.projects[0]}`,
      {
        method: "PATCH",
        headers: { authorization: `Bearer ${sandbox.key}`, "content-type": "application/json" },
        body: JSON.stringify({ fields: { Amount: amount } }),
      },
    );
    const shown = response.headers.get("x-basetide-sql");
    check(response.ok, `the proxy answers ${response.status}: ${await response.text()}`);
    const isShown = async () => {
      const [row] = await this.#reader<{ amount: number | null }[]>`
        select amount::float8 as amount from ${this.#named("projects")} where id = ${this.source.projects[0]!}`;
      return row?.amount === amount;
    };
    // The only exception: the answer says that SQL will follow.
    if (shown === "pending") await until(isShown, { what: "SQL shows the write", timeoutMs: TIMEOUT_MS });
    else check(await isShown(), `SQL does not show the write after the answer (x-basetide-sql: ${shown})`);
  }

  async #makeViews(): Promise<void> {
    if (this.#isHosted)
      await this.given.service.operator(["database", "set-writable", this.#base!.database.id, "on"]);
    await this.#open();
    // A pooler's connection to the server may be older than the write access, and read-only by default.
    await this.#reader.begin("read write", async (tx) => {
      const [names, amounts, projects] = ["names", "amounts", "projects"].map((name) => this.#named(name));
      await tx`create view ${names!} as select id, name from ${projects!}`;
      await tx`create materialized view ${amounts!} as select sum(amount) as amount from ${projects!}`;
    });
  }

  async #viewsFollow(): Promise<void> {
    const [row] = await this.#reader`
      select (select count(*)::int from ${this.#named("names")}) as names,
        (select count(*)::int from ${this.#named("projects")}) as projects`;
    check(row!.names === row!.projects, `the view has ${row!.names} of ${row!.projects} rows`);
    const amounts = this.#named("amounts");
    await this.#reader.begin("read write", (tx) => tx`refresh materialized view ${amounts}`);
  }

  /** Before Postgres 18, the old name of a column needs its table's name, and the schema in the search_path. */
  async #oldNames(): Promise<void> {
    const count = (sql: postgres.Sql) => countOldNames(sql, this.schema);
    check((await count(this.#reader)) === 1, "the old name of a column shows other values");
    this.#control.renameTable(this.source.id, "Tasks", "Chores");
    await this.#same();
    const [row] = await this.#reader`select count(*)::int as n from ${this.#named("tasks")}`;
    check(row!.n === this.source.tasks.length, "the old name of a table shows other rows");
    this.#control.renameTable(this.source.id, "Chores", "Tasks");
    await this.#same();
  }

  /** Reads by a login of its own, also by old names; Postgres 15 cannot have such users. */
  async #sqlUser(): Promise<void> {
    const { account, sslmode, version } = this.given;
    const path = `bases/${this.#id}/sql-users`;
    if (version === "15") {
      const { status, text } = await account.api("POST", path, { name: "analyst" });
      check(status === 409 && text.includes("Postgres 15"), `a SQL user on Postgres 15: ${status} ${text}`);
      return;
    }
    const { sql_user, credentials } = await account.ask<{
      sql_user: { id: string };
      credentials: { url: string };
    }>("POST", path, { name: "analyst" });
    const url = withMode(credentials.url, sslmode);
    await ask(url, async (sql) => {
      check((await countOldNames(sql, this.schema)) === 1, "the SQL user reads other values by an old name");
      const [row] = await sql`select count(*)::int as n from chores`;
      check(row!.n === this.source.tasks.length, "the SQL user reads other rows by an old name");
      await refused(
        sql.begin("read write", (tx) => tx.unsafe("delete from projects")),
        "a SQL user that deletes",
      );
    });
    await account.ask("DELETE", `${path}/${sql_user.id}`);
    const opens = await ask(url, (sql) => sql`select 1`).then(
      () => true,
      () => false,
    );
    check(!opens, "a revoked SQL user logs in");
  }

  async #changeLinks(): Promise<void> {
    const typeOf = async () =>
      (await columnsByComment(this.#reader, "projects", this.schema)).get("Tasks")?.type;
    for (const [isText, type] of [
      [true, "text"],
      [false, "ARRAY"],
    ] as const) {
      await this.given.account.change(this.#id, { linked_records_as_text: isText });
      await until(async () => (await typeOf()) === type, {
        what: `links are ${type}`,
        timeoutMs: TIMEOUT_MS,
      });
    }
    await this.#same();
  }

  async #extras(): Promise<void> {
    await this.given.account.change(this.#id, { link_views: true, history: true });
    const shown = { timeoutMs: TIMEOUT_MS, retryErrors: true };
    await until(
      async () =>
        (await this.#reader`select from ${this.#named("projects__tasks")}`).length ===
        this.source.tasks.length,
      {
        what: "the view of links has a row for each",
        ...shown,
      },
    );
    // The first edit may happen before history is on.
    await until(
      async () => {
        await this.edit();
        return (
          await this
            .#reader`select from ${this.#named("_sync_history")} where record_id = ${this.source.tasks[0]!}`
        ).length;
      },
      { what: "an edit is in the history", ...shown },
    );
  }

  async #cannotWrite(): Promise<void> {
    for (const statement of [
      "delete from projects",
      "drop table projects",
      "update _sync_meta set completed_at = now()",
    ]) {
      await refused(
        this.#reader.begin("read write", (tx) => tx.unsafe(statement)),
        statement,
      );
    }
  }

  async #cannotCross(): Promise<void> {
    const { account, sandbox, sslmode } = this.given;
    const other = makeSourceBase(sandbox, "Other");
    const { id, database } = await account.connect({
      platform: "airtable",
      api_key: sandbox.key,
      base_id: other.id,
      settings: { paused: true },
    });
    const url = new URL(withMode(await account.credentials(this.#id), sslmode));
    url.pathname = `/${database.name}`;
    await refused(
      ask(url.href, (sql) => sql`select 1`),
      `connecting to ${database.name}`,
    );
    await this.#delete(id);
  }

  async #rotate(): Promise<void> {
    const { account, sslmode } = this.given;
    const old = withMode(await account.credentials(this.#id), sslmode);
    await account.ask("POST", `bases/${this.#id}/credentials/rotate`);
    await this.#open();
    await this.#reader`select 1`;
    const opens = await ask(old, (sql) => sql`select 1`).then(
      () => true,
      () => false,
    );
    check(!opens, "the old password still opens the database");
  }

  async #addSecond(): Promise<void> {
    const { account, sandbox } = this.given;
    const second = makeSourceBase(sandbox, "Second");
    const { id } = await account.connect({
      platform: "airtable",
      api_key: sandbox.key,
      base_id: second.id,
      destination: { kind: "existing", database_id: this.#base!.database.id, schema: "second" },
    });
    await until(async () => (await account.base(id)).sync.completed_at, {
      what: "the second base is synced",
      timeoutMs: TIMEOUT_MS,
    });
    const { differences } = await compareToSource(this.#reader, second.dump(), "second");
    check(differences.length === 0, differences.join("; "));
  }
}

/** The rows in which the old name `extra` and the current one have the same value. */
async function countOldNames(sql: postgres.Sql, schema: string): Promise<number> {
  return sql.begin(async (tx) => {
    await tx`select set_config('search_path', ${schema}, true)`;
    const [row] = await tx`
      select count(*)::int as n from projects as p where p.extra is not null and p.extra = p.size`;
    return row!.n as number;
  }) as Promise<number>;
}

/**
 * @throws Error unless the server refuses it for missing rights, with its own code or that of a pooler that forwards
 *   the message
 */
async function refused(attempt: Promise<unknown>, what: string): Promise<void> {
  const said = await attempt.then(
    () => "it was done",
    ({ code, message }: { code?: string; message: string }) => `${code} ${message}`,
  );
  check(said.startsWith(FORBIDDEN) || said.includes("permission denied for"), `${what}: ${said}`);
}

function pool(url: string): postgres.Sql {
  return postgres(url, { max: 1, prepare: false, fetch_types: false, onnotice: () => {} });
}

async function ask<T>(url: string, question: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = pool(url);
  try {
    return await question(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function withMode(url: string, sslmode: string | undefined): string {
  const full = new URL(url);
  if (sslmode !== undefined) full.searchParams.set("sslmode", sslmode);
  return full.href;
}
