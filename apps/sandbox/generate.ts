/**
 * Generates a base: the same options give the same base to the last byte, on every machine.
 *
 * Every table has the first `fieldsPerTable` of the fields in `generate-fields.ts`, and links to the next table (the
 * last one to the first). Computed fields are live.
 */

import { settle } from "./build";
import { ControlError } from "./errors";
import { type FieldKind, fieldKinds, type MakeCell } from "./generate-fields";
import type { SandboxBase, SandboxField, SandboxTable } from "./model";
import { Random } from "./random";
import type { Sandbox } from "./sandbox";
import { emptyBase, newTable } from "./schema";
import { DEFAULT_USER } from "./store";
import { newRow } from "./transaction";

export interface GenerateOptions {
  baseId?: string;
  name?: string;
  /** In the whole base, distributed evenly over its tables. */
  records: number;
  /** 1 if absent. */
  tables?: number;
  seed?: number;
  /** 15 if absent; inverse link fields are added to them. */
  fieldsPerTable?: number;
  /** The most links in a cell, 2 if absent; 0 for tables without links. */
  links?: number;
}

const TABLE_NAMES = ["Projects", "Tasks", "People", "Invoices", "Meetings", "Assets", "Places", "Orders"];

/** The first record's creation, ms: a fixed day, so that times are the same in every run. */
const FIRST_CREATED_MS = Date.UTC(2024, 0, 1);
const MINUTE_MS = 60_000;

/** @throws ControlError for a base id that is taken or for invalid numbers */
export function generateBase(sandbox: Sandbox, options: GenerateOptions): SandboxBase {
  const { records, tables = 1, seed = 1, fieldsPerTable = 15, links = 2, name = "Generated" } = options;
  if (!(records >= 0 && tables >= 1 && fieldsPerTable >= 1 && links >= 0))
    throw new ControlError(
      "`records` and `links` must be 0 or more, `tables` and `fieldsPerTable` 1 or more.",
    );
  const base = emptyBase(name, options.baseId ?? freeBaseId(sandbox, seed));
  if (sandbox.store.bases.has(base.id))
    throw new ControlError(`There is already a base ${base.id}. Give another baseId, or delete that one.`);
  const random = new Random(`${seed} ${base.id}`);
  const made = Array.from({ length: tables }, (_, i) => newTable({ name: tableName(i) }, random));
  for (const table of made) base.tables.set(table.id, table);
  const makers = made.map((table, i) => addFields(made, table, i, fieldsPerTable, links > 0, random));
  if (links > 0) for (const table of made) addInverse(base, table, random);
  for (const [i, table] of made.entries()) {
    const share = Math.floor(records / tables) + (i < records % tables ? 1 : 0);
    addRows(table, share, makers[i]!, random);
  }
  if (links > 0) for (const table of made) linkRows(base, table, links, random);
  settle(sandbox, base);
  sandbox.store.bases.set(base.id, base);
  return base;
}

function freeBaseId(sandbox: Sandbox, seed: number): string {
  const random = new Random(`base ${seed}`);
  let id = random.id("app");
  while (sandbox.store.bases.has(id)) id = random.id("app");
  return id;
}

function tableName(index: number): string {
  const round = Math.floor(index / TABLE_NAMES.length);
  const name = TABLE_NAMES[index % TABLE_NAMES.length]!;
  return round === 0 ? name : `${name} ${round + 1}`;
}

/** Adds the table's fields. Returns the generator of each cell of a row, by field id. */
function addFields(
  tables: SandboxTable[],
  table: SandboxTable,
  index: number,
  count: number,
  hasLinks: boolean,
  random: Random,
): Map<string, MakeCell> {
  const makers = new Map<string, MakeCell>();
  const kinds = fieldKinds(hasLinks);
  const linked = tables[(index + 1) % tables.length]!;
  for (let i = 0; i < count; i++) {
    const kind = i < kinds.length ? kinds[i]! : repeated(kinds, i);
    const field: SandboxField = { id: fieldId(table, kind.name), name: kind.name, type: kind.type };
    const options = kind.options?.({
      fieldId: (name) => fieldId(table, name),
      linkedTableId: linked.id,
      linkedFieldId: (name) => fieldId(linked, name),
      choiceId: () => random.id("sel"),
    });
    if (options) field.options = options;
    if (kind.aggregation) field.aggregation = kind.aggregation;
    table.fields.push(field);
    if (kind.cell) makers.set(field.id, kind.cell);
  }
  table.primaryFieldId = table.fields[0]!.id;
  return makers;
}

/** Beyond the list, its plain fields are repeated with a number. */
function repeated(kinds: FieldKind[], index: number): FieldKind {
  const plain = kinds.filter((kind) => kind.cell);
  const kind = plain[index % plain.length]!;
  return { ...kind, name: `${kind.name} ${index}` };
}

/** Field ids are derived from the table's, so that tables can refer to each other before they exist. */
function fieldId(table: SandboxTable, name: string): string {
  return new Random(`${table.id} ${name}`).id("fld");
}

function addInverse(base: SandboxBase, table: SandboxTable, random: Random): void {
  const link = table.fields.find((field) => field.type === "multipleRecordLinks" && field.name === "Related");
  const other = base.tables.get(String(link?.options?.linkedTableId));
  if (!link?.options || !other || other === table) return;
  const id = random.id("fld");
  other.fields.push({
    id,
    name: `From ${table.name}`,
    type: "multipleRecordLinks",
    options: {
      linkedTableId: table.id,
      isReversed: true,
      prefersSingleRecordLink: false,
      inverseLinkFieldId: link.id,
    },
  });
  link.options.inverseLinkFieldId = id;
}

function addRows(table: SandboxTable, count: number, makers: Map<string, MakeCell>, random: Random): void {
  for (let i = 0; i < count; i++) {
    const createdMs = FIRST_CREATED_MS + i * MINUTE_MS;
    const row = newRow(table, {
      id: random.id("rec"),
      createdTime: new Date(createdMs).toISOString(),
      user: DEFAULT_USER,
      nowMs: createdMs + random.int(0, 1000) * MINUTE_MS,
    });
    for (const [id, make] of makers) {
      const value = make(random, i);
      if (value !== undefined) row.cells[id] = value;
    }
    table.rows.set(row.id, row);
  }
}

function linkRows(base: SandboxBase, table: SandboxTable, most: number, random: Random): void {
  const link = table.fields.find((field) => field.type === "multipleRecordLinks" && field.name === "Related");
  const other = base.tables.get(String(link?.options?.linkedTableId));
  const inverseId = link?.options?.inverseLinkFieldId;
  const targets = other ? [...other.rows.values()] : [];
  if (!link || targets.length === 0) return;
  for (const row of table.rows.values()) {
    const linked = new Set(Array.from({ length: random.int(0, most) }, () => random.pick(targets)));
    if (linked.size === 0) continue;
    row.cells[link.id] = [...linked].map((target) => target.id);
    if (typeof inverseId !== "string") continue;
    for (const target of linked) {
      const back = (target.cells[inverseId] ?? []) as string[];
      target.cells[inverseId] = [...back, row.id];
    }
  }
}
