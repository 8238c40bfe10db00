/**
 * Every base, and the only way to change one: `Store.change`.
 *
 * S1. A change is all or nothing: if `make` throws, everything it did is undone and no listener is called.
 * S2. Every change that is kept is reported to the listeners once, as a list of events in terms of tables, fields and
 *     records; webhooks need nothing else.
 */
import type { Cells, SandboxBase, SandboxField, User, Version } from "./model";
import { Random } from "./random";
import { Transaction } from "./transaction";

/** The source of a change, in the terms of the webhook reference. */
export type ChangeSource = "client" | "publicApi" | "automation" | "formSubmission" | "sync" | "system";

export type ChangeEvent =
  | { kind: "record_created"; tableId: string; recordId: string; createdTime: string; cells: Cells }
  /** Cells that changed, by field id; null is an empty cell. */
  | { kind: "record_updated"; tableId: string; recordId: string; current: Cells; previous: Cells }
  | { kind: "record_deleted"; tableId: string; recordId: string }
  | { kind: "field_created"; tableId: string; field: SandboxField }
  | { kind: "field_updated"; tableId: string; fieldId: string; current: SandboxField; previous: SandboxField }
  | { kind: "field_deleted"; tableId: string; fieldId: string }
  | { kind: "table_created"; tableId: string }
  | { kind: "table_updated"; tableId: string; previous: { name: string; description?: string | undefined } }
  | { kind: "table_deleted"; tableId: string };

export interface StoreChange {
  baseId: string;
  source: ChangeSource;
  user: User;
  timestampMs: number;
  /** Counts the changes of the base, from 1. */
  transactionNumber: number;
  events: ChangeEvent[];
}

export const DEFAULT_USER: User = {
  id: "usrSandboxDefault",
  email: "sandbox@example.org",
  name: "Sandbox User",
};

/** Users that a collaborator cell can name; the control API can add more. */
const OTHER_USERS: User[] = [
  { id: "usrSandboxAda0001", email: "ada@example.org", name: "Ada Example" },
  { id: "usrSandboxBen0002", email: "ben@example.org", name: "Ben Example" },
  { id: "usrSandboxCho0003", email: "cho@example.org", name: "Cho Example" },
];

export class Store {
  readonly bases = new Map<string, SandboxBase>();
  readonly users = new Map<string, User>();
  readonly random: Random;
  #version: Version = 0;
  #listeners = new Set<(change: StoreChange) => void>();
  /** Added to the machine's clock, so that tests can advance the time. */
  clockOffsetMs = 0;

  constructor(random = new Random()) {
    this.random = random;
    this.#addPeople();
  }

  #addPeople(): void {
    for (const user of [DEFAULT_USER, ...OTHER_USERS]) this.users.set(user.id, user);
  }

  now(): number {
    return Date.now() + this.clockOffsetMs;
  }

  nextVersion(): Version {
    return ++this.#version;
  }

  onChange(listener: (change: StoreChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Returns a base to read it, or to change it: then its tables are no longer those of other bases.
   *
   * @returns undefined if there is none
   */
  open(baseId: string, isChange: boolean): SandboxBase | undefined {
    const base = this.bases.get(baseId);
    if (base?.sharedFrom !== undefined && isChange) {
      base.tables = structuredClone(base.tables);
      base.sharedFrom = undefined;
      // Caches may hold the shared tables.
      base.schemaVersion = base.version = this.nextVersion();
    }
    return base;
  }

  /** Adds a base with the tables of another one, which both share until one of them is changed. */
  clone(of: SandboxBase, id: string): SandboxBase {
    of.sharedFrom ??= of.id;
    const clone = { ...of, id, transactionNumber: 0 };
    this.bases.set(id, clone);
    return clone;
  }

  /**
   * Changes `base` by calling `make` with the transaction, and calls the listeners.
   *
   * @throws the error of `make`, after undoing all of it
   */
  change<T>(base: SandboxBase, source: ChangeSource, user: User, make: (transaction: Transaction) => T): T {
    if (base.sharedFrom !== undefined) throw new Error(`${base.id} shares its tables: open it for a change.`);
    const transaction = new Transaction(this, base, user);
    let result: T;
    try {
      result = make(transaction);
    } catch (error) {
      transaction.undo();
      throw error;
    }
    const events = transaction.events();
    if (events.length > 0) {
      base.transactionNumber += 1;
      const change: StoreChange = {
        baseId: base.id,
        source,
        user,
        timestampMs: transaction.nowMs,
        transactionNumber: base.transactionNumber,
        events,
      };
      for (const listener of this.#listeners) listener(change);
    }
    return result;
  }

  /** Deletes all bases, and all users except the initial ones. */
  clear(): void {
    this.bases.clear();
    this.users.clear();
    this.clockOffsetMs = 0;
    this.#addPeople();
  }
}
