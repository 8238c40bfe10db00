/**
 * A base that is edited at its source and through the proxy, and compared with its source, cell by cell.
 *
 * I1. A write that the proxy has answered is in SQL, unless the answer says that it is not yet.
 * I6. Every read of a reader finds the table with its rows, and the formula of each row fits its text.
 */
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import { compareToSource, type SourceDump } from "../../support/compare-to-source";
import { until } from "../../support/poll";
import type { Service } from "./service";

export type Mode = "sweep" | "rapid" | "live" | "resting" | "capped";

const RECORDS = 40;
/** How often the reader looks, ms of real time. */
const LOOK_MS = 500;
const MOST_VIOLATIONS = 10;
/** The view over attachments adds this column. */
const IGNORED = ["Files (files)"];

/** The settings of each mode; `capped` is swept within a monthly budget. */
const SETTINGS: Record<Mode, object> = {
  sweep: { live: false, history: true },
  rapid: { live: false, rapid: true },
  live: { live: true, own_attachment_urls: true, attachment_views: true, history: true },
  resting: { live: true },
  capped: { live: false },
};

export class LapseBase {
  readonly violations: string[] = [];
  cells = 0;
  looks = 0;
  writes = 0;
  pending = 0;
  retried = 0;
  reader!: postgres.Sql;
  database = "";
  #note = "Note";
  #isOver = false;
  #watching: Promise<void> = Promise.resolve();

  private constructor(
    readonly service: Service,
    readonly mode: Mode,
    readonly id: string,
    readonly sourceId: string,
  ) {}

  static async connect(service: Service, mode: Mode, workspaceId: string): Promise<LapseBase> {
    const { baseId } = (await service.sandbox.call("POST", "bases", sourceOf(mode))) as { baseId: string };
    const { id } = await service.manage<{ id: string }>("POST", "bases", {
      platform: "airtable",
      api_key: service.sandbox.key,
      base_id: baseId,
      settings: SETTINGS[mode],
      ...(mode === "capped" ? { workspace_id: workspaceId } : {}),
    });
    const base = new LapseBase(service, mode, id, baseId);
    const { url } = await service.manage<{ url: string }>("GET", `bases/${id}/credentials`);
    base.database = new URL(url).pathname.slice(1);
    base.reader = postgres(url, { max: 2, onnotice: () => {}, fetch_types: false });
    await base.equal(120_000);
    base.#watching = base.#watch();
    return base;
  }

  /** Waits until SQL equals the source. @throws Error with the first differences */
  async equal(timeoutMs: number): Promise<void> {
    const dump = (await this.service.sandbox.call("GET", `dump/${this.sourceId}`)) as SourceDump;
    let differences: string[] = [];
    const isEqual = async () => {
      const compared = await compareToSource(this.reader, dump, "public", IGNORED);
      differences = compared.differences;
      if (differences.length === 0) this.cells += compared.cells;
      return differences.length === 0;
    };
    const options = { what: "equal", timeoutMs, intervalMs: 250, retryErrors: true };
    await until(isEqual, options).catch((error: Error) => {
      throw new Error(`I3: ${this.mode} differs: ${(differences.join("; ") || error.message).slice(0, 500)}`);
    });
  }

  /** People edit the base in the source. */
  async edit(random: Random): Promise<void> {
    const items = await this.itemIds();
    const path = `bases/${this.sourceId}/tables/Items/records`;
    const { call } = this.service.sandbox;
    const files = Array.from({ length: random.int(0, 2) }, (_, at) => ({
      url: `https://files.example/${at}.png`,
      filename: `${at}.png`,
    }));
    const fields = { Name: `edited ${crypto.randomUUID()}`, Count: random.int(0, 1000), Files: files };
    await call("PATCH", path, { records: [{ id: random.pick(items), fields }] });
    await call("POST", path, { records: [{ fields: { Name: `made ${crypto.randomUUID()}` } }] });
    await call("DELETE", path, { ids: [items.at(-1)!] });
  }

  /** Renames a field. @returns the old column */
  async rename(number: number): Promise<string> {
    const old = this.#note.toLowerCase().replace(" ", "_");
    const name = `Note ${number}`;
    await this.service.sandbox.call(
      "PATCH",
      `bases/${this.sourceId}/tables/Items/fields/${encodeURIComponent(this.#note)}`,
      { name },
    );
    this.#note = name;
    return old;
  }

  /** A client writes through the proxy, and reads SQL. */
  async write(random: Random): Promise<void> {
    const id = random.pick(await this.itemIds());
    const Name = `written ${crypto.randomUUID()}`;
    const send = () => this.service.proxied("PATCH", `${this.sourceId}/Items/${id}`, { fields: { Name } });
    let answer = await send();
    // A timer that is set in the moment of a jump is due at once, and an answer of the control plane that is on its way
    // then names a time of the day before; clients try again.
    if (answer.status >= 500 || answer.status === 429) {
      this.retried++;
      answer = await send();
    }
    if (!answer.ok)
      throw new Error(`A write to ${this.mode} was answered ${answer.status}: ${await answer.text()}`);
    await answer.text();
    this.writes++;
    if (answer.headers.get("x-basetide-sql") === "pending") {
      this.pending++;
      return;
    }
    const shown = await this.nameOf(id);
    if (shown !== Name) this.#found(`I1: "${shown}" is shown instead of "${Name}"`);
  }

  /** What SQL shows of a record of Items. */
  async nameOf(id: string): Promise<string | null | undefined> {
    const [row] = await this.reader.unsafe<{ name: string | null }[]>(
      `select name from items where id = '${id}'`,
    );
    return row?.name;
  }

  async countOf(id: string): Promise<number | undefined> {
    const [row] = await this.reader.unsafe<{ count: number | null }[]>(
      `select count::float8 as count from items where id = '${id}'`,
    );
    return row?.count ?? undefined;
  }

  /** Whether a column answers. */
  async answers(column: string): Promise<boolean> {
    try {
      await this.reader.unsafe(`select ${column} from items limit 1`).simple();
      return true;
    } catch (error) {
      if ((error as { code?: string }).code === "42703") return false;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
    await this.reader.end({ timeout: 1 });
  }

  /** The records of Items in the source. */
  async itemIds(): Promise<string[]> {
    const dump = (await this.service.sandbox.call("GET", `dump/${this.sourceId}`)) as SourceDump;
    return dump.tables.find(({ name }) => name === "Items")!.records.map(({ id }) => id);
  }

  async #watch(): Promise<void> {
    for (; !this.#isOver; await Bun.sleep(LOOK_MS)) {
      try {
        const rows = await this.reader<{ name: string | null; shout: string | null }[]>`
          select name, shout from items`.simple();
        this.looks++;
        if (rows.length < RECORDS - 5) this.#found(`I6: the table has ${rows.length} rows`);
        if (rows.some(({ name, shout }) => (name ?? "").toUpperCase() !== (shout ?? "")))
          this.#found("I6: a formula does not fit its row");
      } catch (error) {
        this.#found(
          `I6: a reader was answered ${(error as { code?: string }).code} ${(error as Error).message}`,
        );
      }
    }
  }

  #found(violation: string): void {
    const said = `${violation} (${this.mode}, ${new Date().toISOString()})`;
    if (this.violations.length < MOST_VIOLATIONS) this.violations.push(said);
  }
}

function sourceOf(mode: Mode) {
  const name = mode.padEnd(8, "0");
  const [tableId, nameId, linkId] = [`tblItem00${name}`, `fldName00${name}`, `fldLink00${name}`];
  const itemId = (index: number) => `rec${name}${String(index).padStart(6, "0")}`;
  return {
    name: `Lapse ${mode}`,
    tables: [
      {
        id: tableId,
        name: "Items",
        fields: [
          { id: nameId, name: "Name", type: "singleLineText" },
          { name: "Count", type: "number", options: { precision: 0 } },
          { name: "Shout", type: "formula", options: { formula: "UPPER({Name})" } },
          { name: "Files", type: "multipleAttachments" },
          { name: "Note", type: "multilineText" },
        ],
        records: Array.from({ length: RECORDS }, (_, at) => ({
          id: itemId(at),
          fields: { Name: `first ${at}`, Count: at, Note: `note ${at}` },
        })),
      },
      {
        name: "Orders",
        fields: [
          { name: "Label", type: "singleLineText" },
          {
            id: linkId,
            name: "Item",
            type: "multipleRecordLinks",
            options: { linkedTableId: tableId, isOneWay: true },
          },
          {
            name: "Item names",
            type: "multipleLookupValues",
            options: { recordLinkFieldId: linkId, fieldIdInLinkedTable: nameId },
          },
        ],
        records: Array.from({ length: 2 * RECORDS }, (_, at) => ({
          fields: { Label: `order ${at}`, Item: [itemId(at % RECORDS)] },
        })),
      },
    ],
  };
}
