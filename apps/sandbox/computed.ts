/**
 * Computes the cells that clients cannot write: formulas, lookups, rollups, counts, numbers, times and authors.
 *
 * They are computed when they are read, and cached with the row until the row, the schema or a table that they read
 * changes. Loaded records keep the computed cells that they came with (`Field.isFrozen`).
 */
import { dependenciesOf, linkedTable } from "./dependencies";
import {
  type CompiledFormula,
  cellToFormulaValue,
  compileFormula,
  type FormulaValue,
  formulaResultToCell,
  type RowContext,
} from "./formula";
import {
  choicesOf,
  fieldById,
  fieldResolver,
  idsOf,
  isEmptyCell,
  isEvaluated,
  type RowCache,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  textOption,
} from "./model";
import { aggregate } from "./rollup";
import { displayValue } from "./text";
import { wholeSecondIso } from "./times";

const ERROR_CELL = { error: "#ERROR!" };

/** Marks a cell in a row's cache while it is being computed: reading the mark means a cycle. */
const IN_PROGRESS = Symbol("in progress");

export class Computed {
  readonly #now: () => number;
  readonly #compiled = new WeakMap<
    SandboxField,
    { schemaVersion: number; formula: CompiledFormula | undefined }
  >();
  readonly #foreign = new WeakMap<SandboxTable, { baseVersion: number; foreignVersion: number }>();

  /** @param now the sandbox's clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The cell, stored or computed; undefined if empty. Attachments do not have their URLs yet. */
  cell(base: SandboxBase, table: SandboxTable, row: SandboxRow, field: SandboxField): unknown {
    if (!isEvaluated(field) || (field.isFrozen && row.isLoaded)) return row.cells[field.id];
    const cache = this.#cacheOf(base, table, row);
    if (cache.computed.has(field.id)) {
      const known = cache.computed.get(field.id);
      return known === IN_PROGRESS ? ERROR_CELL : known;
    }
    cache.computed.set(field.id, IN_PROGRESS);
    const value = this.#evaluate(base, table, row, field);
    cache.computed.set(field.id, value);
    return value;
  }

  /**
   * Changes whenever computed cells of `table` may have changed although their rows did not: with a table that they
   * read, and with each millisecond if a formula uses the current time.
   */
  foreignVersion(base: SandboxBase, table: SandboxTable): number {
    const known = this.#foreign.get(table);
    if (known?.baseVersion === base.version) return known.foreignVersion;
    const { tables, isVolatile } = dependenciesOf(base, table);
    let foreignVersion = isVolatile ? this.#now() : 0;
    for (const other of tables) foreignVersion += other.version;
    if (!isVolatile) this.#foreign.set(table, { baseVersion: base.version, foreignVersion });
    return foreignVersion;
  }

  /** A record in the form that the formula language reads. */
  rowContext(base: SandboxBase, table: SandboxTable, row: SandboxRow): RowContext {
    return {
      recordId: row.id,
      createdTime: Date.parse(row.createdTime),
      lastModifiedTime: (fieldIds) => this.#lastModifiedMs(row, fieldIds),
      cell: (fieldId) => {
        const field = fieldById(table, fieldId);
        return field ? this.#formulaValue(base, table, row, field) : null;
      },
      now: this.#now,
    };
  }

  /** The cell as displayed text; the text of the primary cell is the record's name. */
  text(base: SandboxBase, table: SandboxTable, row: SandboxRow, field: SandboxField): string {
    const value = this.cell(base, table, row, field);
    if (field.type === "multipleRecordLinks") return this.#names(base, field, value).join(", ");
    return displayValue(value, field);
  }

  primaryText(base: SandboxBase, table: SandboxTable, row: SandboxRow): string {
    const primary = fieldById(table, table.primaryFieldId);
    return primary ? this.text(base, table, row, primary) : "";
  }

  #cacheOf(base: SandboxBase, table: SandboxTable, row: SandboxRow): RowCache {
    const foreignVersion = this.foreignVersion(base, table);
    const known = row.cache;
    if (
      known?.rowVersion === row.version &&
      known.schemaVersion === base.schemaVersion &&
      known.foreignVersion === foreignVersion
    )
      return known;
    const { version: rowVersion } = row;
    row.cache = { rowVersion, schemaVersion: base.schemaVersion, foreignVersion, computed: new Map() };
    return row.cache;
  }

  #evaluate(base: SandboxBase, table: SandboxTable, row: SandboxRow, field: SandboxField): unknown {
    switch (field.type) {
      case "formula":
        return this.#formula(base, table, row, field);
      case "multipleLookupValues":
      case "lookup":
        return this.#collect(base, table, row, field);
      case "rollup":
        return this.#rollup(base, table, row, field);
      case "count":
        return idsOf(row.cells[textOption(field, "recordLinkFieldId") ?? ""]).length;
      case "autoNumber":
        return row.autoNumber;
      case "createdTime":
        return timeCell(row.createdTime, field);
      case "lastModifiedTime": {
        const referenced = field.options?.referencedFieldIds;
        const ms = this.#lastModifiedMs(row, Array.isArray(referenced) ? (referenced as string[]) : []);
        return ms === null ? undefined : timeCell(wholeSecondIso(ms), field);
      }
      case "createdBy":
        return row.createdBy;
      case "lastModifiedBy":
        return row.modifiedBy;
      default:
        return undefined;
    }
  }

  #formula(base: SandboxBase, table: SandboxTable, row: SandboxRow, field: SandboxField): unknown {
    const compiled = this.#compile(base, table, field);
    if (!compiled) return ERROR_CELL;
    return formulaResultToCell(compiled.evaluate(this.rowContext(base, table, row)));
  }

  #compile(base: SandboxBase, table: SandboxTable, field: SandboxField): CompiledFormula | undefined {
    const known = this.#compiled.get(field);
    if (known?.schemaVersion === base.schemaVersion) return known.formula;
    let formula: CompiledFormula | undefined;
    try {
      formula = compileFormula(textOption(field, "formula") ?? "", fieldResolver(table));
    } catch {
      // A field whose text is not a valid formula shows its error in every cell.
      formula = undefined;
    }
    this.#compiled.set(field, { schemaVersion: base.schemaVersion, formula });
    return formula;
  }

  /** A lookup's values: one entry per value of each linked row, without empty ones. */
  #collect(
    base: SandboxBase,
    table: SandboxTable,
    row: SandboxRow,
    field: SandboxField,
  ): unknown[] | undefined {
    const values: unknown[] = [];
    const found = this.#target(base, table, field);
    if (!found) return undefined;
    for (const id of idsOf(row.cells[found.link.id])) {
      const linked = found.table.rows.get(id);
      const value = linked && this.cell(base, found.table, linked, found.field);
      if (Array.isArray(value)) values.push(...value);
      else if (!isEmptyCell(value)) values.push(value);
    }
    return values.length === 0 ? undefined : values;
  }

  #rollup(base: SandboxBase, table: SandboxTable, row: SandboxRow, field: SandboxField): unknown {
    const found = this.#target(base, table, field);
    if (!found) return undefined;
    let values = this.#collect(base, table, row, field) ?? [];
    if (found.field.type === "multipleRecordLinks") values = this.#names(base, found.field, values);
    const isNumeric = resultTypeOf(field) === "number" || values.every((value) => typeof value === "number");
    const name = field.aggregation ?? (isNumeric ? "SUM" : "ARRAYJOIN");
    const value = aggregate(name, values, (one) => displayValue(one, found.field));
    return isEmptyCell(value) ? undefined : value;
  }

  #target(
    base: SandboxBase,
    table: SandboxTable,
    field: SandboxField,
  ): { link: SandboxField; table: SandboxTable; field: SandboxField } | undefined {
    const link = fieldById(table, textOption(field, "recordLinkFieldId") ?? "");
    const other = link && linkedTable(base, link);
    const target = other && fieldById(other, textOption(field, "fieldIdInLinkedTable") ?? "");
    return link && other && target ? { link, table: other, field: target } : undefined;
  }

  #names(base: SandboxBase, link: SandboxField, value: unknown): string[] {
    const other = linkedTable(base, link);
    return idsOf(value).map((id) => {
      const row = other?.rows.get(id);
      return other && row ? this.primaryText(base, other, row) : id;
    });
  }

  #formulaValue(base: SandboxBase, table: SandboxTable, row: SandboxRow, field: SandboxField): FormulaValue {
    const value = this.cell(base, table, row, field);
    if (field.type === "multipleRecordLinks") return this.#names(base, field, value);
    return cellToFormulaValue(value, resultTypeOf(field));
  }

  #lastModifiedMs(row: SandboxRow, fieldIds: readonly string[] = []): number | null {
    if (fieldIds.length === 0) return row.modifiedMs;
    const times = fieldIds.flatMap((id) => row.fieldModifiedMs[id] ?? []);
    return times.length === 0 ? null : Math.max(...times);
  }
}

/** The type of the cell's value: a computed field's declared result, else the field's own type. */
export function resultTypeOf(field: SandboxField): string {
  const result = field.options?.result as { type?: unknown } | null | undefined;
  if (typeof result?.type === "string") return result.type;
  return field.type;
}

/** A select field's choices in order, for sorting. */
export function choiceRank(field: SandboxField): Map<string, number> {
  return new Map(choicesOf(field).map((choice, index) => [choice.name, index]));
}

function timeCell(iso: string, field: SandboxField): string {
  return resultTypeOf(field) === "date" ? iso.slice(0, 10) : iso;
}
