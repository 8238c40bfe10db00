/**
 * What a customer relies on while people in Airtable rename things, the selection changes, and faults happen: a table
 * `Ledger` in each base, which a SQL user reads with a login of its own.
 *
 * Names. A pinned name always answers. Where names follow, a name that SQL has shown answers until its time is over. A
 * reader meets no errors but those of a server that is down.
 * Selection. The cells of an omitted field are nowhere, and neither are those of a field that was omitted or hashed
 * later, once SQL equals the source.
 * Attachments. In one statement, the view over attachments has the files of each row.
 */
import Airtable from "airtable";
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import type { SourceDump } from "../../support/compare-to-source";
import { until } from "../../support/poll";
import type { WatchedBase } from "./watched-base";

/** The names of one field, by turns. */
const STATES = ["State", "Status", "Phase", "Stage"];
const STATE_COLUMNS = STATES.map((name) => name.toLowerCase());
const ALIAS_DAYS = 7;
/** The beginnings of cells that must not be found. */
const OMITTED = "kept-out-of-sql";
const HUSHED = "hushed-sometimes";
const LOOK_EVERY_MS = 200;
const CALL_MS = 10_000;
/** For a change of the setting to be applied, ms: a base may pause for three minutes. */
const APPLIED_MS = 300_000;
/** More than these add no information. */
const MOST_VIOLATIONS = 5;
/** Relations, rights, logins: no server that is down answers so. */
const WRONG = /^(?:42|28|3D|0A|22)/;

export type Treatment = "copied" | "hashed" | "omitted";

/** A call of the management API. @throws Error if it is refused */
export type Manage = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** A table of a new base, for the source. */
export function ledgerTable(mode: string) {
  const name = mode.padEnd(6, "0");
  const field = (id: string, fieldName: string, type: string) => ({
    id: `fld${id}${name}`,
    name: fieldName,
    type,
  });
  return {
    id: `tblLedger00${name}`,
    name: "Ledger",
    fields: [
      field("LName000", "Name", "singleLineText"),
      field("LState00", STATES[0]!, "singleLineText"),
      field("LSecret0", "Secret", "singleLineText"),
      field("LHush000", "Hush", "singleLineText"),
      field("LFiles00", "Files", "multipleAttachments"),
    ],
    // Files get ids when they are written.
    records: Array.from({ length: 8 }, (_, at) => ({ fields: cells(STATES[0]!, `first ${at}`, 0) })),
  };
}

function cells(state: string, value: string, files: number) {
  return {
    Name: value,
    [state]: `state of ${value}`,
    Secret: `${OMITTED} ${value}`,
    Hush: `${HUSHED} ${value}`,
    Files: Array.from({ length: files }, (_, at) => ({
      url: `https://files.example/${at}.png`,
      filename: `${value} ${at}.png`,
    })),
  };
}

export class Contract {
  readonly violations: string[] = [];
  /** Reads of the SQL user, changes that were made, and how often all old names were seen to end. */
  readonly counts = { looks: 0, renames: 0, selections: 0, expired: 0 };
  readonly #said = new Set<string>();
  #tableId = "";
  #stateId = "";
  #ids: string[] = [];
  #user: postgres.Sql | undefined;
  /** Names that SQL has shown: of the renamed column, and, as `side…`, of the renamed table. */
  #shown = new Set<string>();
  /** Old names end, or the worker may not know yet that they should not. */
  #isExpiring = false;
  #expiry: Promise<void> | undefined;
  /** How often names could no longer be relied on. A look that began before says nothing. */
  #epoch = 0;
  #isOver = false;
  #watching: Promise<void> = Promise.resolve();

  constructor(
    readonly base: WatchedBase,
    readonly isPinned: boolean,
    private readonly manage: Manage,
  ) {}

  /** Sets the base up before its first sync, and creates the SQL user. */
  async begin(dump: SourceDump): Promise<void> {
    const ledger = dump.tables.find(({ name }) => name === "Ledger")!;
    this.#tableId = ledger.id;
    this.#ids = ledger.records.map(({ id }) => id);
    this.#stateId = ledger.fields.find(({ name }) => name === STATES[0])!.id;
    const { id } = this.base.facts;
    await this.#choose("copied");
    const settings = { pinned_names: this.isPinned, attachment_views: true, alias_days: ALIAS_DAYS };
    await this.manage("PATCH", `bases/${id}`, settings);
    const created = (await this.manage("POST", `bases/${id}/sql-users`, { name: "analyst" })) as {
      credentials: { url: string };
    };
    this.#user = postgres(this.base.cluster.ownLine.over(created.credentials.url), {
      max: 1,
      onnotice: () => {},
      backoff: () => 0.1,
      connect_timeout: 3,
      fetch_types: false,
    });
  }

  watch(): void {
    this.#watching = this.#watch();
  }

  /** @returns a function to call when the server has lost later data */
  mark(): () => void {
    const shown = new Set(this.#shown);
    return () => {
      this.#shown = this.#shown.intersection(shown);
      this.#epoch++;
    };
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
    await this.#expiry?.catch(() => {});
    await this.#user?.end({ timeout: 1 });
  }

  /** Makes one change, of the kinds that a customer and people in Airtable make. */
  async change(random: Random, apiKey: string, endpoint: string): Promise<void> {
    const { source, facts } = this.base;
    const at = `bases/${facts.sourceBaseId}/tables/${this.#tableId}`;
    // A rename first, so that even a short run has one.
    const kind = this.counts.renames === 0 ? 0 : random.next();
    if (kind < 0.3) {
      await source.call("PATCH", `${at}/fields/${this.#stateId}`, { name: random.pick(STATES) });
      this.counts.renames++;
    } else if (kind < 0.45) {
      await this.#choose(random.pick(["copied", "hashed", "omitted"] as const));
      this.counts.selections++;
    } else if (kind < 0.5) {
      this.#expiry ??= this.#expire().finally(() => {
        this.#expiry = undefined;
      });
    } else {
      const { State: _, ...fields } = cells("State", crypto.randomUUID().slice(0, 8), random.int(0, 3));
      const record = { id: random.pick(this.#ids), fields };
      if (kind < 0.75) await source.call("PATCH", `${at}/records`, { records: [record] });
      else {
        const airtable = new Airtable({
          apiKey,
          endpointUrl: endpoint,
          requestTimeout: CALL_MS,
          noRetryIfRateLimited: true,
        });
        // The answer has all fields; SQL shows the copied ones.
        await airtable
          .base(facts.sourceBaseId)("Ledger")
          .update([record as never]);
      }
    }
  }

  /** Columns that the comparison with the source leaves out, and the source as SQL should show it. */
  shownOf(dump: SourceDump, treatment: Treatment): { dump: SourceDump; ignored: string[] } {
    const hidden = treatment === "omitted" ? ["Secret", "Hush"] : ["Secret"];
    const tables = dump.tables.map((table) =>
      table.id === this.#tableId
        ? { ...table, fields: table.fields.filter(({ name }) => !hidden.includes(name)) }
        : table,
    );
    return { dump: { tables }, ignored: ["Files (files)", ...(treatment === "hashed" ? ["Hush"] : [])] };
  }

  /** What the selection in the control plane says of the field that is hashed or omitted at times. */
  async treatment(control: postgres.Sql): Promise<Treatment> {
    const [row] = await control<{ treated: Treatment | null }[]>`
      select selection #>> ${["tables", this.#tableId, "fields", this.#hushId]} as treated
      from bases where id = ${this.base.facts.id}`;
    return row?.treated ?? "copied";
  }

  /** Waits until no byte of what is not copied is in a table of the replica or the control plane. @throws Error */
  async searched(control: postgres.Sql, treatment: Treatment, timeoutMs: number): Promise<void> {
    const words = treatment === "copied" ? [OMITTED] : [OMITTED, HUSHED];
    let found: string[] = [];
    const isClean = async () => {
      found = [
        ...(await tablesWith(this.base.owner, words)).map((table) => `${table} of ${this.base.facts.mode}`),
        ...(await tablesWith(control, words)).map((table) => `${table} of the control plane`),
      ];
      return found.length === 0;
    };
    await until(isClean, { what: "omitted cells are gone", timeoutMs, retryErrors: true }).catch(
      (error: Error) => {
        throw new Error(`selection: ${found.join(", ") || error.message} has cells that are ${treatment}`);
      },
    );
  }

  get #hushId(): string {
    return this.#stateId.replace("LState00", "LHush000");
  }

  async #choose(hush: Treatment): Promise<void> {
    const omitted = [this.#stateId.replace("LState00", "LSecret0")];
    if (hush === "omitted") omitted.push(this.#hushId);
    await this.manage("PUT", `bases/${this.base.facts.id}/selection`, {
      new_tables: "copy",
      tables: [
        {
          table_id: this.#tableId,
          copied: true,
          omitted_fields: omitted,
          hashed_fields: hush === "hashed" ? [this.#hushId] : [],
        },
      ],
    });
  }

  /** Ends the old names, and lets later ones answer again. Nothing is expected of old names meanwhile. */
  async #expire(): Promise<void> {
    if (this.isPinned) return;
    this.#isExpiring = true;
    this.#epoch++;
    await this.#setAliasDays(0);
    this.counts.expired++;
    await this.#setAliasDays(ALIAS_DAYS);
    this.#shown = new Set();
    this.#isExpiring = false;
    this.#epoch++;
  }

  /** Changes the setting, and waits until the replica has it and, without days, no old name. */
  async #setAliasDays(days: number): Promise<void> {
    const { facts, owner } = this.base;
    const isDone = async () => {
      if (this.#isOver) return true;
      await this.manage("PATCH", `bases/${facts.id}`, { alias_days: days });
      const [state] = await owner<{ days: number; aliases: number }[]>`
        select alias_days as days, (select count(*)::int from public_swap._aliases) as aliases
        from public_swap._state`;
      if (state?.days === days && (days > 0 || state.aliases === 0)) return true;
      throw new Error(`the ${facts.mode} replica has ${JSON.stringify(state)}`);
    };
    await until(isDone, {
      what: `aliases last ${days} days`,
      timeoutMs: APPLIED_MS,
      intervalMs: 1000,
      retryErrors: true,
    });
  }

  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const epoch = this.#epoch;
      try {
        await this.#look(epoch);
      } catch (error) {
        const { code = "", message } = error as { code?: string; message: string };
        if (WRONG.test(code) && epoch === this.#epoch) this.#found(`the SQL user: ${code} ${message}`);
      }
      await Bun.sleep(LOOK_EVERY_MS);
    }
  }

  async #look(epoch: number): Promise<void> {
    const user = this.#user!;
    const [tables, rows, wrong] = await Promise.all([
      user<{ name: string }[]>`
        select relname as name from pg_class
        where relnamespace = 'public'::regnamespace and relname ~ '^side(_[0-9]+)?$'`.simple(),
      user<Record<string, unknown>[]>`select * from ledger`.simple(),
      user<{ id: string; files: string[]; viewed: object[] | null }[]>`
        select l.id, l.files, l.files__files as details, f.viewed from ledger as l
          cross join lateral (
            select json_agg(f) as viewed, count(f.filename) as number from ledger__files as f where f.ledger_id = l.id
          ) as f
        where coalesce(cardinality(l.files), 0) <> f.number`.simple(),
    ]);
    this.counts.looks++;
    for (const row of wrong)
      this.#found(`the view over attachments has other files than the row: ${JSON.stringify(row)}`);
    for (const row of rows) {
      const names = STATE_COLUMNS.filter((name) => name in row);
      if (new Set(names.map((name) => row[name])).size > 1)
        this.#found(`the names ${names.join(", ")} of one column show different values`);
      if (Object.values(row).some((cell) => String(cell).includes(OMITTED)))
        this.#found("an omitted cell is in the table");
    }
    if (this.#isExpiring || epoch !== this.#epoch) return;
    const columns = STATE_COLUMNS.filter((name) => rows[0] !== undefined && name in rows[0]);
    if (this.isPinned && (columns.join() !== STATE_COLUMNS[0] || tables.some(({ name }) => name !== "side")))
      this.#found(`pinned names have become ${[...columns, ...tables.map(({ name }) => name)].join(", ")}`);
    // An error of these statements is a name that does not answer.
    const [tablesShown, columnsShown] = [...this.#shown].reduce<[string[], string[]]>(
      (both, name) => {
        both[name.startsWith("side") ? 0 : 1].push(name);
        return both;
      },
      [[], []],
    );
    const table = tablesShown[this.counts.looks % (tablesShown.length || 1)];
    if (table !== undefined) await user.unsafe(`select note from ${table} limit 1`);
    if (columnsShown.length > 0) await user.unsafe(`select ${columnsShown.join(", ")} from ledger limit 1`);
    if (epoch !== this.#epoch) return;
    for (const name of [...columns, ...tables.map((one) => one.name)]) this.#shown.add(name);
  }

  #found(violation: string): void {
    const said = `contract: ${violation} (${this.base.facts.mode}${this.isPinned ? ", pinned" : ""})`;
    if (this.#said.has(said) || this.violations.length >= MOST_VIOLATIONS) return;
    this.#said.add(said);
    this.violations.push(`${said}, seen ${new Date().toISOString()}`);
  }
}

/** The sums of all bases. */
export function contractCounts(bases: readonly WatchedBase[]): Contract["counts"] {
  const total = { looks: 0, renames: 0, selections: 0, expired: 0 };
  for (const { contract } of bases)
    for (const [what, count] of Object.entries(contract.counts)) total[what as keyof typeof total] += count;
  return total;
}

/** The tables and materialized views that contain one of the words in some row. */
async function tablesWith(sql: postgres.Sql, words: string[]): Promise<string[]> {
  const tables = await sql<{ name: string }[]>`
    select oid::regclass::text as name from pg_class
    where relkind in ('r', 'm')
      and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`;
  if (tables.length === 0) return [];
  const one = ({ name }: { name: string }) =>
    `select '${name}' as name where exists (select from ${name} as t where ${words.map((word) => `t::text like '%${word}%'`).join(" or ")})`;
  const rows = await sql.unsafe<{ name: string }[]>(tables.map(one).join(" union all "));
  return rows.map(({ name }) => name);
}
