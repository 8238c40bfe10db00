/**
 * The sandbox's control API as a typed object: the changes that a test, a bench or a person makes. Over HTTP, the same
 * is under `/_sandbox` (`control-routes.ts`).
 *
 * Edits made here count as those of a user in the app. Tables and fields are named by id or exact name.
 */

import type { AccessKey, KeyOptions } from "./auth";
import { type BaseInput, buildBase, type RecordInput, type TableInput } from "./build";
import type { CapPolicy, CapUsage } from "./caps";
import { writtenCells } from "./cells";
import { type Dump, dumpBase } from "./dump";
import { ControlError } from "./errors";
import type { Fault, FaultOptions } from "./faults";
import { type GenerateOptions, generateBase } from "./generate";
import { type LoadOptions, loadBase } from "./load";
import {
  type Cells,
  findField,
  isEmptyCell,
  type SandboxBase,
  type SandboxField,
  type SandboxRow,
  type SandboxTable,
  tableByIdOrName,
  type User,
} from "./model";
import type { Network } from "./network";
import type { LogEntry, LogSummary } from "./request-log";
import type { Sandbox } from "./sandbox";
import { checkFieldName, checkTableName, newTable } from "./schema";
import { addField, deleteField, deleteTable, type NewField, renameChoice, retypeField } from "./schema-edit";
import type { Settings, SettingsPatch } from "./settings";
import { type ChangeSource, DEFAULT_USER, type StoreChange } from "./store";
import type { Transaction } from "./transaction";
import { WebhookControl } from "./webhooks";
import { writeContext } from "./writes";

export interface EditOptions {
  /** The recorded source of the edit: a user in the app (`client`) if absent. */
  source?: ChangeSource | undefined;
  /** Stores cells unchecked; otherwise they are converted as with typecast. */
  raw?: boolean;
}

export class Control {
  readonly webhooks: WebhookControl;
  readonly #sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
    this.webhooks = new WebhookControl(sandbox);
  }

  /** @throws ControlError where the sandbox was started without a network */
  get network(): Network {
    if (this.#sandbox.network) return this.#sandbox.network;
    throw new ControlError("This sandbox has no network. Start it with SANDBOX_NETWORK, such as 80±20.");
  }

  // Bases

  /** Loads a folder of captured answers. @returns the base's id */
  load(options: LoadOptions): string {
    return loadBase(this.#sandbox, options).id;
  }

  generate(options: GenerateOptions): string {
    return generateBase(this.#sandbox, options).id;
  }

  createBase(input: BaseInput): string {
    return buildBase(this.#sandbox, input).id;
  }

  /** Adds a base with the tables, records and ids of another one. Until a change, it takes no memory. @returns its id */
  cloneBase(baseId: string): string {
    const { store } = this.#sandbox;
    return store.clone(this.#base(baseId), store.random.id("app")).id;
  }

  deleteBase(baseId: string): void {
    this.#sandbox.store.bases.delete(this.#base(baseId).id);
  }

  bases(): { id: string; name: string; tables: number; records: number }[] {
    return [...this.#sandbox.store.bases.values()].map(({ id, name, tables }) => {
      const records = [...tables.values()].reduce((sum, table) => sum + table.rows.size, 0);
      return { id, name, tables: tables.size, records };
    });
  }

  /** Returns the true state: schema and all records. */
  dump(baseId: string): Dump {
    return dumpBase(this.#sandbox, this.#base(baseId));
  }

  // Records

  /** @returns the new records' ids */
  createRecords(baseId: string, table: string, records: RecordInput[], options: EditOptions = {}): string[] {
    return this.#edit(
      baseId,
      (transaction) => {
        const target = this.#table(transaction.base, table);
        return records.map(({ id, createdTime, fields }) => {
          if (id !== undefined && target.rows.has(id))
            throw new ControlError(`There is already a record ${id}.`);
          const cells: Cells = {};
          for (const [field, value] of this.#cells(transaction, target, fields, options))
            if (!isEmptyCell(value)) cells[field.id] = value;
          return transaction.createRow(target, cells, {
            ...(id && { id }),
            ...(createdTime && { createdTime }),
          }).id;
        });
      },
      options.source,
    );
  }

  /** Changes the given cells; null clears one. */
  updateRecords(
    baseId: string,
    table: string,
    records: { id: string; fields: Record<string, unknown> }[],
    options: EditOptions = {},
  ): void {
    this.#edit(
      baseId,
      (transaction) => {
        const target = this.#table(transaction.base, table);
        for (const { id, fields } of records) {
          const row = this.#row(target, id);
          for (const [field, value] of this.#cells(transaction, target, fields, options, row))
            transaction.setCell(target, row, field, value);
        }
      },
      options.source,
    );
  }

  deleteRecords(baseId: string, table: string, ids: string[], { source }: EditOptions = {}): void {
    const make = (transaction: Transaction) => {
      const target = this.#table(transaction.base, table);
      for (const id of ids) transaction.deleteRow(target, this.#row(target, id));
    };
    this.#edit(baseId, make, source);
  }

  #cells(
    transaction: Transaction,
    table: SandboxTable,
    fields: Record<string, unknown>,
    options: EditOptions,
    row?: SandboxRow,
  ): Iterable<[SandboxField, unknown]> {
    const fieldOf = (name: string) => this.#field(table, name);
    if (options.raw)
      return Object.entries(fields).map(([name, value]) => [fieldOf(name), value ?? undefined]);
    return writtenCells(writeContext(this.#sandbox, transaction, true, true), fieldOf, fields, row);
  }

  // Fields

  /** @returns the new field's id */
  addField(baseId: string, table: string, field: NewField, position?: number): string {
    return this.#edit(baseId, (transaction) => {
      const target = this.#table(transaction.base, table);
      checkFieldName(target, field.name);
      return addField(transaction, target, field, this.#sandbox.store.random, position).id;
    });
  }

  renameField(baseId: string, table: string, field: string, name: string): void {
    this.#editField(baseId, table, field, (transaction, target, found) => {
      checkFieldName(target, name, found);
      transaction.updateField(target, found, { name });
    });
  }

  /** Replaces description or options as given, without changing cells. */
  patchField(
    baseId: string,
    table: string,
    field: string,
    patch: Pick<SandboxField, "description" | "options">,
  ): void {
    this.#editField(baseId, table, field, (transaction, target, found) =>
      transaction.updateField(target, found, patch),
    );
  }

  deleteField(baseId: string, table: string, field: string): void {
    this.#editField(baseId, table, field, deleteField);
  }

  /** Changes a field's type; cells are converted where possible. */
  retypeField(
    baseId: string,
    table: string,
    field: string,
    type: string,
    options?: Record<string, unknown>,
  ): void {
    this.#editField(baseId, table, field, (transaction, target, found) => {
      const context = writeContext(this.#sandbox, transaction, true, true);
      retypeField(context, this.#sandbox.computed, target, found, type, options);
    });
  }

  moveField(baseId: string, table: string, field: string, position: number): void {
    this.#editField(baseId, table, field, (transaction, target, found) =>
      transaction.moveField(target, found, position),
    );
  }

  renameChoice(baseId: string, table: string, field: string, from: string, to: string): void {
    this.#editField(baseId, table, field, (transaction, target, found) =>
      renameChoice(transaction, target, found, from, to),
    );
  }

  // Tables

  /** @returns the new table's id */
  addTable(
    baseId: string,
    input: Pick<TableInput, "id" | "name" | "description"> & { fields: NewField[] },
  ): string {
    return this.#edit(baseId, (transaction) => {
      checkTableName(transaction.base, input.name);
      const table = newTable(input, this.#sandbox.store.random);
      transaction.addTable(table);
      for (const field of input.fields) addField(transaction, table, field, this.#sandbox.store.random);
      return table.id;
    });
  }

  renameTable(baseId: string, table: string, name: string): void {
    this.#edit(baseId, (transaction) => {
      const target = this.#table(transaction.base, table);
      checkTableName(transaction.base, name, target);
      transaction.updateTable(target, { name });
    });
  }

  deleteTable(baseId: string, table: string): void {
    this.#edit(baseId, (transaction) => deleteTable(transaction, this.#table(transaction.base, table)));
  }

  // The sandbox itself

  settings(patch: SettingsPatch = {}): Settings {
    return this.#sandbox.set(patch);
  }

  /** Lifts the request limits of a base, or restores them. */
  liftQuota(baseId: string, isLifted = true): void {
    const others = this.#sandbox.settings.unlimitedBases.filter((id) => id !== baseId);
    this.#sandbox.set({ unlimitedBases: isLifted ? [...others, baseId] : others });
  }

  /** Answers 429 for the penalty, although no limit was exceeded. @returns when it began, on the log's clock, ms */
  refuseBase(baseId: string): number {
    const nowMs = performance.now();
    this.#sandbox.limiter.refuse(this.#sandbox.settings, nowMs, this.#base(baseId).id);
    return nowMs;
  }

  /** Ends all 429 penalties and forgets the arrivals that count towards one. */
  resetQuota(baseId?: string): void {
    this.#sandbox.limiter.reset(baseId);
  }

  /**
   * Sets the monthly cap of a workspace, or of the one that a base is in, and the number of its calls.
   *
   * @param patch.bases puts these bases into the workspace
   */
  cap(id: string, patch?: Partial<CapPolicy> & { calls?: number; bases?: string[] }): CapUsage {
    const { bases = [], ...policy } = patch ?? {};
    this.#sandbox.caps.place(id, bases);
    return patch ? this.#sandbox.caps.set(id, policy) : this.#sandbox.caps.usage(id);
  }

  /** Advances time for iterators, attachment URLs, record times, webhooks and the month of the caps. */
  advanceClock(ms: number): void {
    this.#sandbox.set({ clockOffsetMs: this.#sandbox.settings.clockOffsetMs + ms });
  }

  addFault(options: FaultOptions): Fault {
    return this.#sandbox.faults.add(options);
  }

  faults(): Fault[] {
    return this.#sandbox.faults.list();
  }

  clearFaults(id?: number): void {
    this.#sandbox.faults.clear(id);
  }

  /** As after a restart of the service: every list must start again. */
  killIterators(): void {
    this.#sandbox.iterators.clear();
  }

  createKey(options: KeyOptions = {}): string {
    return this.#sandbox.keys.create(options).token;
  }

  revokeKey(token: string): boolean {
    return this.#sandbox.keys.revoke(token);
  }

  keys(): AccessKey[] {
    return this.#sandbox.keys.list();
  }

  /** Adds a user, whom collaborator cells can then name. */
  addUser(user: User): void {
    this.#sandbox.store.users.set(user.id, user);
  }

  log(baseId?: string): LogEntry[] {
    return this.#sandbox.log.entries(baseId);
  }

  logSummary(): LogSummary {
    return this.#sandbox.log.summary();
  }

  clearLog(): void {
    this.#sandbox.log.clear();
  }

  /** Calls `listener` for every change from any source. @returns a function that ends it */
  onChange(listener: (change: StoreChange) => void): () => void {
    return this.#sandbox.store.onChange(listener);
  }

  reset(): void {
    this.#sandbox.reset();
  }

  // Finding

  #edit<T>(baseId: string, make: (transaction: Transaction) => T, source: ChangeSource = "client"): T {
    this.#sandbox.store.open(baseId, true);
    return this.#sandbox.store.change(this.#base(baseId), source, DEFAULT_USER, make);
  }

  #editField(
    baseId: string,
    table: string,
    field: string,
    make: (transaction: Transaction, table: SandboxTable, field: SandboxField) => void,
  ): void {
    this.#edit(baseId, (transaction) => {
      const target = this.#table(transaction.base, table);
      make(transaction, target, this.#field(target, field));
    });
  }

  #base(baseId: string): SandboxBase {
    const base = this.#sandbox.store.bases.get(baseId);
    if (base) return base;
    throw new ControlError(`There is no base ${baseId}. Load, generate or create one first.`);
  }

  #table(base: SandboxBase, nameOrId: string): SandboxTable {
    const table = tableByIdOrName(base, nameOrId);
    if (table) return table;
    throw new ControlError(`The base "${base.name}" has no table "${nameOrId}".`);
  }

  #field(table: SandboxTable, nameOrId: string): SandboxField {
    const field = findField(table, nameOrId);
    if (field) return field;
    throw new ControlError(`The table "${table.name}" has no field "${nameOrId}".`);
  }

  #row(table: SandboxTable, id: string): SandboxRow {
    const row = table.rows.get(id);
    if (row) return row;
    throw new ControlError(`The table "${table.name}" has no record ${id}.`);
  }
}
