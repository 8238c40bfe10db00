/**
 * Generates random histories of a base in memory: records are edited; tables and fields are created and deleted, and
 * change names, types and positions; settings are toggled. This happens between syncs and in the middle of them.
 *
 * Every record has a cell in every field at all times, so a column with some cells missing is one that a reader sees
 * half filled. Fields called "Odd …" hold values that fit no column.
 */
import fc from "fast-check";
import type { FieldType, SourceField, SourceRecord } from "../../core/source";
import type { FakeSource, FakeTable } from "./fake-source";

const KINDS = [
  "create",
  "update",
  "update",
  "delete",
  "add field",
  "add field",
  "rename field",
  "rename field",
  "swap field names",
  "delete field",
  "retype field",
  "retype field",
  "describe field",
  "move field",
  "add table",
  "rename table",
  "rename table",
  "swap table names",
  "delete table",
  "links as text",
  "lookups as text",
  "views over attachments",
  "restart",
] as const;

type Kind = (typeof KINDS)[number];

/** One step. Its numbers select among the objects that exist at that time. */
export interface Step {
  kind: Kind;
  table: number;
  field: number;
  pick: number;
  /** Undefined: before the next sync; else before its request of that number. */
  during: number | undefined;
}

export type History = Step[][];

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS),
  table: fc.nat(20),
  field: fc.nat(20),
  pick: fc.nat(1000),
  during: fc.option(fc.nat(8), { nil: undefined, freq: 3 }),
});

/** The steps before each of several syncs. */
export const histories: fc.Arbitrary<History> = fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), {
  minLength: 3,
  maxLength: 9,
});

/** Names that collide, that need cleaning, and that swap. */
const NAMES = [
  "Alpha",
  "alpha!",
  "Beta",
  "Gamma Ray",
  "gamma ray 🚀",
  "id",
  "Created Time",
  "Δelta",
  "Beta_2",
  "🎉",
];
const TYPES: FieldType[] = [
  "text",
  "long_text",
  "number",
  "currency",
  "checkbox",
  "date",
  "multiple_select",
  "links",
  "lookup",
  "formula",
  "single_select",
  "attachment",
];

export interface Settings {
  linkedRecordsAsText: boolean;
  lookupsAsText: boolean;
  attachmentViews: boolean;
}

/** The base that a history changes. */
export class World {
  readonly settings: Settings = {
    linkedRecordsAsText: false,
    lookupsAsText: false,
    attachmentViews: false,
  };
  /** Another worker runs the next sync. */
  isRestarted = false;
  /** Names of fields that were deleted. */
  readonly deleted = new Set<string>();
  #ids = 0;

  constructor(readonly source: FakeSource) {
    source.pageSize = 20;
    this.#addTable("Alpha", 45);
    this.#addTable("Beta", 12);
  }

  happen({ kind, table, field, pick }: Step): void {
    const { tables } = this.source;
    const target = tables[table % tables.length]!;
    const { fields } = target.table;
    const chosen = fields[field % fields.length]!;
    const name = NAMES[pick % NAMES.length]!;
    switch (kind) {
      case "create":
        for (let count = 0; count <= pick % 3; count++) this.#addRecord(target);
        break;
      case "update": {
        const records = [...target.records.values()];
        for (let count = 0; count < 4; count++) {
          const record = records[(pick * (count + 1)) % records.length]!;
          for (const one of fields) record.fields[one.id] = this.#cell(one, pick + count);
        }
        break;
      }
      case "delete":
        // Few enough that the deletion guard does not stop them.
        if (target.records.size > 8) target.records.delete([...target.records.keys()][pick % 8]!);
        break;
      case "add field":
        if (fields.length < 12) this.#addField(target, pick % 7 === 0 ? `Odd ${name}` : name, pick);
        break;
      case "rename field":
        if (!isOdd(chosen)) chosen.name = name;
        break;
      case "swap field names":
        swapNames(chosen, fields[pick % fields.length]!);
        break;
      case "delete field":
        if (fields.length > 1) this.#deleteField(target, chosen);
        break;
      case "retype field":
        if (!isOdd(chosen)) this.#retype(target, chosen, pick);
        break;
      case "describe field":
        chosen.description = `About ${pick}`;
        break;
      case "move field":
        fields.splice(pick % fields.length, 0, ...fields.splice(field % fields.length, 1));
        break;
      case "add table":
        if (tables.length < 5) this.#addTable(name, 3 + (pick % 40));
        break;
      case "rename table":
        target.table.name = name;
        break;
      case "swap table names": {
        const other = tables[pick % tables.length]!.table;
        [target.table.name, other.name] = [other.name, target.table.name];
        break;
      }
      case "delete table":
        if (tables.length > 1) tables.splice(table % tables.length, 1);
        break;
      case "links as text":
        this.settings.linkedRecordsAsText = !this.settings.linkedRecordsAsText;
        break;
      case "lookups as text":
        this.settings.lookupsAsText = !this.settings.lookupsAsText;
        break;
      case "views over attachments":
        this.settings.attachmentViews = !this.settings.attachmentViews;
        break;
      case "restart":
        this.isRestarted = true;
        break;
    }
  }

  #addTable(name: string, records: number): void {
    const id = `tbl${++this.#ids}`;
    const added = this.source.add({ id, name, primaryFieldId: "", fields: [] }, []);
    for (const [index, type] of (["text", "number", "links"] as const).entries()) {
      this.#addField(added, NAMES[index]!, TYPES.indexOf(type));
    }
    for (let index = 0; index < records; index++) this.#addRecord(added);
  }

  #addField({ table, records }: FakeTable, name: string, pick: number): void {
    const type = name.startsWith("Odd ") ? "barcode" : TYPES[pick % TYPES.length]!;
    const field: SourceField = { id: `fld${++this.#ids}`, name, type, sourceType: type };
    table.fields.push(field);
    for (const record of records.values()) record.fields[field.id] = this.#cell(field, pick);
  }

  #deleteField({ table, records }: FakeTable, field: SourceField): void {
    this.deleted.add(field.name);
    table.fields.splice(table.fields.indexOf(field), 1);
    for (const record of records.values()) delete record.fields[field.id];
  }

  #retype({ records }: FakeTable, field: SourceField, pick: number): void {
    const type = TYPES[pick % TYPES.length]!;
    Object.assign(field, { type, sourceType: type });
    for (const record of records.values()) record.fields[field.id] = this.#cell(field, pick);
  }

  #addRecord({ table, records }: FakeTable): void {
    const id = `rec${String(++this.#ids).padStart(6, "0")}`;
    const record: SourceRecord = { id, createdTime: "2024-05-01T12:34:56.000Z", fields: {} };
    for (const field of table.fields) record.fields[field.id] = this.#cell(field, this.#ids);
    records.set(id, record);
  }

  #cell({ type }: SourceField, version: number): unknown {
    switch (type) {
      case "number":
      case "currency":
        return version / 4;
      case "checkbox":
        return true;
      case "date":
        return `2024-01-${String((version % 28) + 1).padStart(2, "0")}`;
      case "multiple_select":
        return [`a${version}`, "b"];
      case "links":
        return [`recL${version}`, "recM"];
      case "lookup":
        return [version, `v${version}`];
      case "attachment": {
        const file = { id: `att${version}`, url: `https://files.example/${version}` };
        return [{ ...file, filename: `${version}.txt`, size: version }, file];
      }
      case "barcode":
        return { text: version % 2 ? "no digits" : `${version}` };
      default:
        return `text ${version}`;
    }
  }
}

/** Whether its cells may have no value in SQL. */
function isOdd({ name }: SourceField): boolean {
  return name.startsWith("Odd ");
}

function swapNames(one: SourceField, other: SourceField): void {
  if (isOdd(one) || isOdd(other)) return;
  [one.name, other.name] = [other.name, one.name];
}
