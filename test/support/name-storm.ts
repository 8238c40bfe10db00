/**
 * A storm of changes of a base's schema: tables and fields are renamed, swap names, get other types, are added and
 * deleted. The tables and fields that the base begins with are never deleted: readers read those.
 */
import { Random } from "../../apps/sandbox/random";
import type { FieldType, SourceRecord } from "../../core/source";
import type { FakeSource, FakeTable } from "./fake-source";
import { sourceRecord, sourceTable } from "./source-records";

/** Few, so that they collide. */
const NAMES = ["Alpha", "Beta", "alpha!", "Gamma Ray", "State", "Status", "Name 2", "Amount", "🎉", "Order"];
const TYPES = ["text", "number", "long_text"] as const satisfies readonly FieldType[];
const KINDS = [
  "rename field",
  "rename field",
  "rename field",
  "swap field names",
  "rename table",
  "rename table",
  "swap table names",
  "retype field",
  "add field",
  "add field",
  "delete field",
  "add table",
  "delete table",
] as const;
const RECORDS = 12;

export class NameStorm {
  readonly #source: FakeSource;
  readonly #random: Random;
  readonly #tablesAreUnique: boolean;
  /** Ids of the tables and fields that stay. */
  readonly kept: ReadonlySet<string>;
  #made = 0;

  /** @param options.tablesAreUnique no table ever gets a name that another has had */
  constructor(source: FakeSource, seed: number, options: { tablesAreUnique?: boolean } = {}) {
    this.#source = source;
    this.#tablesAreUnique = options.tablesAreUnique ?? false;
    this.#random = new Random(seed);
    for (const name of ["Tasks", "People", "Places"]) this.#addTable(name, 4);
    this.kept = new Set(
      source.tables.flatMap(({ table }) => [table.id, ...table.fields.map((field) => field.id)]),
    );
  }

  /** Makes one change, and returns what it was. */
  step(): string {
    const kind = this.#random.pick([...KINDS]);
    const tables = this.#source.tables;
    const at = this.#random.pick(tables);
    const { fields } = at.table;
    const field = this.#random.pick(fields);
    switch (kind) {
      case "rename field":
        field.name = this.#name();
        break;
      case "swap field names": {
        const other = this.#random.pick(fields);
        [field.name, other.name] = [other.name, field.name];
        break;
      }
      case "rename table":
        at.table.name = this.#tableName();
        break;
      case "swap table names": {
        if (this.#tablesAreUnique) break;
        const other = this.#random.pick(tables);
        [at.table.name, other.table.name] = [other.table.name, at.table.name];
        break;
      }
      case "retype field":
        field.type = this.#random.pick([...TYPES]);
        field.sourceType = field.type;
        for (const record of at.records.values()) record.fields[field.id] = cellOf(field.type, record.id);
        break;
      case "add field":
        if (fields.length < 12) this.#addField(at, this.#name());
        break;
      case "delete field":
        if (!this.kept.has(field.id) && fields.length > 1) fields.splice(fields.indexOf(field), 1);
        break;
      case "add table":
        if (tables.length < 8) this.#addTable(this.#tableName(), 2);
        break;
      case "delete table":
        if (!this.kept.has(at.table.id)) tables.splice(tables.indexOf(at), 1);
        break;
    }
    return kind;
  }

  #name(): string {
    const name = this.#random.pick(NAMES);
    return this.#random.chance(0.3) ? `${name} ${this.#random.int(0, 19)}` : name;
  }

  #tableName(): string {
    return this.#tablesAreUnique ? `Table ${++this.#made}` : this.#name();
  }

  #addTable(name: string, fields: number): void {
    const table = sourceTable(`tbl${++this.#made}`, name, {});
    const added = this.#source.add(
      table,
      Array.from({ length: RECORDS }, (_, index) => sourceRecord(`rec${this.#made}x${index}`, {})),
    );
    for (let nth = 0; nth < fields; nth++) this.#addField(added, NAMES[nth]!);
    table.primaryFieldId = table.fields[0]!.id;
  }

  #addField({ table, records }: FakeTable, name: string): void {
    const id = `fld${++this.#made}`;
    const type = this.#random.pick([...TYPES]);
    table.fields.push({ id, name, type, sourceType: type });
    for (const record of records.values()) record.fields[id] = cellOf(type, record.id);
  }
}

function cellOf(type: FieldType, recordId: string): SourceRecord["fields"][string] {
  return type === "number" ? Number(recordId.split("x")[1]) : `cell of ${recordId}`;
}
