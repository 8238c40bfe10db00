/**
 * Random edits by users of any sandbox base: they edit cells of every type, link, create, delete and restore records,
 * change many records at once, and change the fields and tables that they have created.
 */
import type { Control } from "../../apps/sandbox/control";
import type { Random } from "../../apps/sandbox/random";
import type { WireField, WireRecord, WireTable } from "./expected-cells";

type Table = WireTable & { primaryFieldId?: string; records: WireRecord[] };

/** The most records that one edit changes. */
const MANY = 220;

export class RandomEdits {
  readonly #control: Control;
  readonly #baseId: string;
  readonly #random: Random;
  /** Deleted records that may be restored. */
  readonly #gone: { tableId: string; record: WireRecord }[] = [];
  /** Fields and tables that it has created, and may rename, retype and delete. */
  readonly #fields: { tableId: string; id: string }[] = [];
  readonly #tables: string[] = [];
  #names = 0;

  constructor(control: Control, baseId: string, random: Random) {
    this.#control = control;
    this.#baseId = baseId;
    this.#random = random;
  }

  /** One edit of records. */
  editRecords(): void {
    const table = this.#random.pick(this.#allTables());
    const kinds = ["update", "update", "update", "create", "delete", "undo", "many"] as const;
    switch (this.#random.pick(kinds)) {
      case "update":
        this.#update(table, this.#some(table, 5));
        break;
      case "many":
        this.#update(table, this.#some(table, MANY));
        break;
      case "create":
        this.#create(table);
        break;
      case "delete":
        this.#delete(table);
        break;
      case "undo":
        this.#undo();
        break;
    }
  }

  /** One edit of the schema. */
  editSchema(): void {
    const kinds = [
      "add field",
      "rename",
      "retype",
      "delete field",
      "add table",
      "rename table",
      "delete table",
    ] as const;
    const own = this.#fields.length > 0 ? this.#random.pick(this.#fields) : undefined;
    const ownTable = this.#tables.length > 0 ? this.#random.pick(this.#tables) : undefined;
    const [control, baseId] = [this.#control, this.#baseId];
    switch (this.#random.pick(kinds)) {
      case "add field":
        this.#addField(this.#random.pick(this.#allTables()));
        break;
      case "rename":
        if (own) control.renameField(baseId, own.tableId, own.id, this.#name());
        break;
      case "retype":
        if (own) this.#retype(own);
        break;
      case "delete field":
        if (!own) break;
        this.#fields.splice(this.#fields.indexOf(own), 1);
        control.deleteField(baseId, own.tableId, own.id);
        break;
      case "add table":
        this.#addTable();
        break;
      case "rename table":
        control.renameTable(baseId, this.#random.pick(this.#allTables()).id, this.#name());
        break;
      case "delete table":
        if (!ownTable) break;
        this.#tables.splice(this.#tables.indexOf(ownTable), 1);
        this.#forget(({ tableId }) => tableId === ownTable);
        control.deleteTable(baseId, ownTable);
        break;
    }
  }

  #update(table: Table, records: WireRecord[]): void {
    const fields = table.fields.filter((field) => isWritable(field));
    if (fields.length === 0 || records.length === 0) return;
    const changed = records.map(({ id }) => {
      const field = this.#random.pick(fields);
      return { id, fields: { [field.id]: this.#cell(field) } };
    });
    this.#control.updateRecords(this.#baseId, table.id, changed);
  }

  #create(table: Table): void {
    const records = Array.from({ length: this.#random.int(1, 4) }, () => ({ fields: this.#cells(table) }));
    this.#control.createRecords(this.#baseId, table.id, records);
  }

  /** Few enough that the deletion guard does not stop them. */
  #delete(table: Table): void {
    const records = this.#some(table, 3);
    if (table.records.length < 20) return;
    this.#control.deleteRecords(
      this.#baseId,
      table.id,
      records.map(({ id }) => id),
    );
    this.#gone.push(...records.map((record) => ({ tableId: table.id, record })));
  }

  /** Restores a record under its id, with some of its cells. */
  #undo(): void {
    const [gone] = this.#gone.splice(this.#random.int(0, Math.max(0, this.#gone.length - 1)), 1);
    const table = this.#allTables().find(({ id }) => id === gone?.tableId);
    if (!gone || !table) return;
    const { id, createdTime } = gone.record;
    this.#control.createRecords(this.#baseId, table.id, [{ id, createdTime, fields: this.#cells(table) }]);
  }

  #addField(table: Table): void {
    const primary = table.fields[0]!;
    const kind = this.#random.int(0, 2);
    const field =
      kind === 0
        ? { name: this.#name(), type: "formula", options: { formula: `UPPER({${primary.id}} & "")` } }
        : kind === 1
          ? { name: this.#name(), type: "number", options: { precision: 2 } }
          : { name: this.#name(), type: "singleLineText" };
    const id = this.#control.addField(this.#baseId, table.id, field);
    this.#fields.push({ tableId: table.id, id });
    if (kind === 0) return;
    const records = this.#some(table, MANY).map((record) => ({
      id: record.id,
      fields: { [id]: kind === 1 ? this.#random.int(0, 999) / 4 : String(this.#random.int(0, 99)) },
    }));
    if (records.length > 0) this.#control.updateRecords(this.#baseId, table.id, records);
  }

  #retype({ tableId, id }: { tableId: string; id: string }): void {
    const [type, options] = this.#random.pick([
      ["singleLineText", undefined],
      ["multilineText", undefined],
      ["number", { precision: 1 }],
      ["currency", { precision: 2, symbol: "€" }],
      ["checkbox", { icon: "check", color: "greenBright" }],
    ] as [string, Record<string, unknown> | undefined][]);
    this.#control.retypeField(this.#baseId, tableId, id, type, options);
  }

  #addTable(): void {
    const fields = [
      { name: "Name", type: "singleLineText" },
      { name: "Count", type: "number", options: { precision: 0 } },
    ];
    const id = this.#control.addTable(this.#baseId, { name: this.#name(), fields });
    this.#tables.push(id);
    const records = Array.from({ length: this.#random.int(1, 150) }, (_, index) => ({
      fields: { Name: `N${index}`, Count: index },
    }));
    this.#control.createRecords(this.#baseId, id, records);
  }

  #forget(isOver: (of: { tableId: string }) => boolean): void {
    for (const list of [this.#gone, this.#fields])
      for (const one of list.filter(isOver)) list.splice(list.indexOf(one as never), 1);
  }

  #cells(table: Table): Record<string, unknown> {
    const fields = table.fields.filter((field) => isWritable(field) && this.#random.chance(0.5));
    return Object.fromEntries(fields.map((field) => [field.id, this.#cell(field)]));
  }

  /** Sometimes null. */
  #cell(field: WireField): unknown {
    if (this.#random.chance(0.15)) return null;
    switch (field.type) {
      case "number":
      case "currency":
      case "percent":
        return this.#random.int(0, 9999);
      case "rating":
        return this.#random.int(1, 3);
      case "checkbox":
        return this.#random.chance(0.5);
      case "date":
        return `20${this.#random.int(10, 30)}-0${this.#random.int(1, 9)}-1${this.#random.int(0, 9)}`;
      case "dateTime":
        return `20${this.#random.int(10, 30)}-0${this.#random.int(1, 9)}-1${this.#random.int(0, 9)}T10:20:30.000Z`;
      case "multipleRecordLinks": {
        const { linkedTableId } = field.options as { linkedTableId: string };
        const other = this.#allTables().find(({ id }) => id === linkedTableId);
        return other ? this.#some(other, 3).map(({ id }) => id) : [];
      }
      case "url":
        return `https://example.org/${this.#random.int(0, 999)}`;
      case "email":
        return `p${this.#random.int(0, 999)}@example.org`;
      default:
        return `text ${this.#random.int(0, 9999)}`;
    }
  }

  /** Up to this many different records of the table. */
  #some({ records }: Table, most: number): WireRecord[] {
    const count = Math.min(this.#random.int(1, most), records.length);
    const from = this.#random.int(0, Math.max(0, records.length - 1));
    return Array.from({ length: count }, (_, index) => records[(from + index) % records.length]!);
  }

  #name(): string {
    return `Own ${++this.#names}`;
  }

  #allTables(): Table[] {
    return this.#control.dump(this.#baseId).tables as unknown as Table[];
  }
}

const WRITABLE = new Set([
  "singleLineText",
  "multilineText",
  "richText",
  "number",
  "currency",
  "percent",
  "rating",
  "checkbox",
  "date",
  "dateTime",
  "url",
  "email",
  "phoneNumber",
  "multipleRecordLinks",
]);

function isWritable({ type }: WireField): boolean {
  return WRITABLE.has(type);
}
