/**
 * The operations on a base within one change: rows, cells and their links, fields, tables.
 *
 * Nothing is checked here: callers pass cells in stored form. Each step records how to undo itself. Links stay
 * consistent: writing one side of a link writes the other, and a deleted row is removed from every link cell.
 */
import {
  type Cells,
  type Comment,
  fieldById,
  idsOf,
  isEmptyCell,
  isEvaluated,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  textOption,
  type User,
} from "./model";
import type { ChangeEvent, Store } from "./store";
import { wholeSecondIso } from "./times";

export class Transaction {
  readonly base: SandboxBase;
  readonly nowMs: number;
  readonly user: User;
  readonly #store: Store;
  readonly #undo: (() => void)[] = [];
  readonly #schemaEvents: ChangeEvent[] = [];
  readonly #created = new Map<SandboxRow, SandboxTable>();
  readonly #updated = new Map<SandboxRow, { table: SandboxTable; previous: Cells }>();
  readonly #deleted = new Map<SandboxRow, SandboxTable>();

  constructor(store: Store, base: SandboxBase, user: User) {
    this.#store = store;
    this.base = base;
    this.user = user;
    this.nowMs = store.now();
  }

  // Rows

  createRow(
    table: SandboxTable,
    cells: Cells,
    given: { id?: string; createdTime?: string } = {},
  ): SandboxRow {
    const row = newRow(table, {
      id: given.id ?? this.#store.random.id("rec"),
      createdTime: given.createdTime ?? wholeSecondIso(this.nowMs),
      user: this.user,
      nowMs: this.nowMs,
    });
    table.rows.set(row.id, row);
    table.rowIds = undefined;
    this.#created.set(row, table);
    this.#undo.push(() => {
      table.rows.delete(row.id);
      table.rowIds = undefined;
      table.nextAutoNumber = row.autoNumber;
      this.#touch(table, row);
    });
    this.#touch(table, row);
    for (const [fieldId, value] of Object.entries(cells)) {
      const field = fieldById(table, fieldId);
      if (field) this.setCell(table, row, field, value);
      else row.cells[fieldId] = value;
    }
    return row;
  }

  /**
   * Writes `value` to a cell, and to the other side of a link.
   *
   * @param isEdit false for changes that Airtable does not count as an edit of the row (a renamed choice)
   */
  setCell(table: SandboxTable, row: SandboxRow, field: SandboxField, value: unknown, isEdit = true): void {
    const previous = row.cells[field.id];
    if (field.type === "multipleRecordLinks") this.#linkOtherSide(row, field, idsOf(previous), idsOf(value));
    this.#putCell(table, row, field, value, isEdit);
  }

  #putCell(table: SandboxTable, row: SandboxRow, field: SandboxField, value: unknown, isEdit: boolean): void {
    const previous = row.cells[field.id];
    const [modifiedMs, modifiedBy, fieldModifiedMs] = [
      row.modifiedMs,
      row.modifiedBy,
      row.fieldModifiedMs[field.id],
    ];
    if (isEmptyCell(value)) delete row.cells[field.id];
    else row.cells[field.id] = value;
    if (isEdit && !isEvaluated(field)) {
      row.modifiedMs = this.nowMs;
      row.modifiedBy = this.user;
      row.fieldModifiedMs[field.id] = this.nowMs;
    }
    this.#notePrevious(table, row, field.id, previous);
    this.#touch(table, row);
    this.#undo.push(() => {
      if (previous === undefined) delete row.cells[field.id];
      else row.cells[field.id] = previous;
      row.modifiedMs = modifiedMs;
      row.modifiedBy = modifiedBy;
      if (fieldModifiedMs === undefined) delete row.fieldModifiedMs[field.id];
      else row.fieldModifiedMs[field.id] = fieldModifiedMs;
      this.#touch(table, row);
    });
  }

  /** Adds the row to, or removes it from, the inverse cell of every row that the link gained or lost. */
  #linkOtherSide(row: SandboxRow, field: SandboxField, before: string[], after: string[]): void {
    const other = this.base.tables.get(textOption(field, "linkedTableId") ?? "");
    const inverse = other && fieldById(other, textOption(field, "inverseLinkFieldId") ?? "");
    if (!other || !inverse) return;
    const [had, has] = [new Set(before), new Set(after)];
    for (const id of has) {
      const linked = had.has(id) ? undefined : other.rows.get(id);
      if (!linked) continue;
      const ids = idsOf(linked.cells[inverse.id]);
      if (!ids.includes(row.id)) this.#putCell(other, linked, inverse, [...ids, row.id], true);
    }
    for (const id of had) {
      const linked = has.has(id) ? undefined : other.rows.get(id);
      if (!linked) continue;
      const ids = idsOf(linked.cells[inverse.id]);
      if (ids.includes(row.id))
        this.#putCell(
          other,
          linked,
          inverse,
          ids.filter((other) => other !== row.id),
          true,
        );
    }
  }

  deleteRow(table: SandboxTable, row: SandboxRow): void {
    for (const field of table.fields) {
      if (field.type === "multipleRecordLinks" && row.cells[field.id] !== undefined)
        this.setCell(table, row, field, undefined);
    }
    this.#unlinkOneWay(table, row);
    table.rows.delete(row.id);
    table.rowIds = undefined;
    this.#touch(table, row);
    if (!this.#created.delete(row)) this.#deleted.set(row, table);
    this.#undo.push(() => {
      this.#deleted.delete(row);
      table.rows.set(row.id, row);
      restoreOrder(table);
      this.#touch(table, row);
    });
  }

  /** Removes a deleted row from link cells that have no inverse to find them by. */
  #unlinkOneWay(gone: SandboxTable, row: SandboxRow): void {
    for (const table of this.base.tables.values()) {
      for (const field of table.fields) {
        if (field.type !== "multipleRecordLinks" || textOption(field, "linkedTableId") !== gone.id) continue;
        const inverseId = textOption(field, "inverseLinkFieldId");
        if (inverseId && fieldById(gone, inverseId)) continue;
        for (const linking of table.rows.values()) {
          const ids = idsOf(linking.cells[field.id]);
          if (ids.includes(row.id))
            this.#putCell(
              table,
              linking,
              field,
              ids.filter((id) => id !== row.id),
              true,
            );
        }
      }
    }
  }

  /** Sets a row's comments. They are not part of a cell, so the row counts as unmodified. */
  setComments(table: SandboxTable, row: SandboxRow, comments: Comment[]): void {
    const before = row.comments;
    row.comments = comments;
    this.#touch(table, row);
    this.#undo.push(() => {
      row.comments = before;
      this.#touch(table, row);
    });
  }

  // Fields and tables

  addField(table: SandboxTable, field: SandboxField, position = table.fields.length): void {
    table.fields.splice(position, 0, field);
    this.#schemaEvents.push({ kind: "field_created", tableId: table.id, field: { ...field } });
    this.#undo.push(() => {
      table.fields = table.fields.filter((other) => other.id !== field.id);
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  /** Replaces parts of a field's definition; `options` is replaced as a whole. */
  updateField(table: SandboxTable, field: SandboxField, patch: Partial<Omit<SandboxField, "id">>): void {
    const previous = { ...field };
    Object.assign(field, patch);
    this.#schemaEvents.push({
      kind: "field_updated",
      tableId: table.id,
      fieldId: field.id,
      current: { ...field },
      previous,
    });
    this.#undo.push(() => {
      for (const key of Object.keys(field) as (keyof SandboxField)[]) delete field[key];
      Object.assign(field, previous);
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  moveField(table: SandboxTable, field: SandboxField, position: number): void {
    const before = table.fields;
    const others = before.filter((other) => other.id !== field.id);
    others.splice(position, 0, field);
    table.fields = others;
    this.#undo.push(() => {
      table.fields = before;
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  removeField(table: SandboxTable, field: SandboxField): void {
    const [before, cells] = [table.fields, new Map<SandboxRow, unknown>()];
    table.fields = before.filter((other) => other.id !== field.id);
    for (const row of table.rows.values()) {
      if (row.cells[field.id] === undefined) continue;
      cells.set(row, row.cells[field.id]);
      delete row.cells[field.id];
    }
    this.#schemaEvents.push({ kind: "field_deleted", tableId: table.id, fieldId: field.id });
    this.#undo.push(() => {
      table.fields = before;
      for (const [row, value] of cells) row.cells[field.id] = value;
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  addTable(table: SandboxTable): void {
    this.base.tables.set(table.id, table);
    this.#schemaEvents.push({ kind: "table_created", tableId: table.id });
    this.#undo.push(() => {
      this.base.tables.delete(table.id);
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  updateTable(
    table: SandboxTable,
    patch: Partial<Pick<SandboxTable, "name" | "description" | "dateDependencySettings" | "primaryFieldId">>,
  ): void {
    const { name, description, dateDependencySettings, primaryFieldId } = table;
    Object.assign(table, patch);
    this.#schemaEvents.push({ kind: "table_updated", tableId: table.id, previous: { name, description } });
    this.#undo.push(() => {
      Object.assign(table, { name, description, dateDependencySettings, primaryFieldId });
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  removeTable(table: SandboxTable): void {
    const before = [...this.base.tables];
    this.base.tables.delete(table.id);
    this.#schemaEvents.push({ kind: "table_deleted", tableId: table.id });
    this.#undo.push(() => {
      this.base.tables.clear();
      for (const [id, other] of before) this.base.tables.set(id, other);
      this.#touchSchema(table);
    });
    this.#touchSchema(table);
  }

  // Bookkeeping

  undo(): void {
    for (const step of this.#undo.reverse()) step();
  }

  /** The changes, in one event per row: the cells at the end compared with those at the beginning. */
  events(): ChangeEvent[] {
    const events = [...this.#schemaEvents];
    for (const [row, table] of this.#created)
      events.push({
        kind: "record_created",
        tableId: table.id,
        recordId: row.id,
        createdTime: row.createdTime,
        cells: { ...row.cells },
      });
    for (const [row, { table, previous }] of this.#updated) {
      if (this.#created.has(row) || this.#deleted.has(row)) continue;
      const current: Cells = {};
      for (const fieldId of Object.keys(previous)) current[fieldId] = row.cells[fieldId] ?? null;
      events.push({ kind: "record_updated", tableId: table.id, recordId: row.id, current, previous });
    }
    for (const [row, table] of this.#deleted)
      events.push({ kind: "record_deleted", tableId: table.id, recordId: row.id });
    return events;
  }

  #notePrevious(table: SandboxTable, row: SandboxRow, fieldId: string, previous: unknown): void {
    const noted = this.#updated.get(row);
    if (!noted) this.#updated.set(row, { table, previous: { [fieldId]: previous ?? null } });
    else if (!(fieldId in noted.previous)) noted.previous[fieldId] = previous ?? null;
  }

  #touch(table: SandboxTable, row: SandboxRow): void {
    row.version = this.#store.nextVersion();
    table.version = row.version;
    this.base.version = row.version;
  }

  #touchSchema(table: SandboxTable): void {
    table.version = this.#store.nextVersion();
    this.base.schemaVersion = table.version;
    this.base.version = table.version;
  }
}

/** A row without cells, with the table's next autonumber; not in the table yet. */
export function newRow(
  table: SandboxTable,
  given: { id: string; createdTime: string; user: User; nowMs: number; isLoaded?: boolean },
): SandboxRow {
  return {
    id: given.id,
    createdTime: given.createdTime,
    cells: {},
    autoNumber: table.nextAutoNumber++,
    createdBy: given.user,
    modifiedBy: given.user,
    modifiedMs: given.nowMs,
    fieldModifiedMs: {},
    comments: [],
    isLoaded: given.isLoaded ?? false,
    version: 0,
  };
}

/** Restores the order of creation, after a row was restored at the end. */
function restoreOrder(table: SandboxTable): void {
  const rows = [...table.rows.values()].sort((a, b) => a.autoNumber - b.autoNumber);
  table.rows.clear();
  for (const row of rows) table.rows.set(row.id, row);
  table.rowIds = undefined;
}
