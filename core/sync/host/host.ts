/**
 * What sync needs of the service that runs it: the bases, their secrets, and a place for what sync finds out.
 *
 * Sync imports nothing of that service. `core/control/sync-host` implements this on the control plane.
 */
import type { Notifier } from "../../async";
import type { AttachmentSigner, ReplicaTarget, ShapeChange } from "../../replica";
import type { Selecting, SourceSchema, TableSize } from "../../source";
import type {
  Allowance,
  FailingTable,
  FoundProblem,
  IndexSetting,
  Progress,
  RunReport,
  SchemaError,
  SyncedBase,
  SyncFacts,
  SyncSettings,
} from "./base";
import type { FeedStore } from "./feed-store";

export interface Host {
  /** @throws BasetideError `not_found`; `control_unavailable`, as all of these do */
  base(id: string): Promise<SyncedBase>;
  /** Returns how the base reads its source: its key, and what is copied. @throws BasetideError `secret_unreadable` */
  access(
    base: Pick<SyncedBase, "id" | "selection">,
  ): Promise<{ apiKey: string; selecting: Selecting | undefined }>;
  /** Returns the base's replica, with the right to write it. @throws BasetideError `secret_unreadable` */
  replicaTarget(base: SyncedBase): Promise<ReplicaTarget>;
  /** Returns the signer of the base's attachment URLs, if they are on. */
  attachmentSigner(id: string): Promise<AttachmentSigner | undefined>;
  /** Returns the sizes of tables that were measured before the first sync, by table id. */
  measuredSizes(id: string): Promise<Readonly<Record<string, TableSize>>>;
  /** Returns what of the base may change at any time; undefined if it no longer exists. */
  facts(id: string): Promise<SyncFacts | undefined>;
  /** Calls back with the facts whenever they change, within about a second. */
  watch(id: string, onFacts: OnFacts): Watching;
  /** Returns what a change of settings interrupts. */
  interruptedBy(before: SyncSettings, now: SyncSettings): "nothing" | "updates" | "every sync";
  /** Returns what sync may spend on each of these bases that exists. */
  allowances(ids: string[]): Promise<Allowance[]>;
  /** Returns the state of the base's replica at the start of its last lease. */
  replicaState(id: string): Promise<ReplicaState>;
  /**
   * Records the current state. If commits may be lost, a sweep must find the changes that the feed reported before now.
   *
   * @returns false, and records nothing, if a lease with this epoch or a later one has been recorded, or the base is gone
   */
  recordReplicaState(id: string, state: ReplicaState, mayHaveLost: boolean): Promise<boolean>;
  /** Saves what sync has found out. */
  save(id: string, findings: Findings): Promise<void>;
  /**
   * Stores a run, for the history and the state of the base.
   *
   * @returns the base as it is stored now, if it is known without reading it: after a completed sweep
   */
  saveRun(base: SyncedBase, report: RunReport): Promise<SyncedBase | undefined>;
  /** Postpones the base's next lease by `ms`, for its budget; a request of people ends that. */
  restUntil(id: string, ms: number): Promise<void>;
  /** Returns the notifier of the base's feed; the same one as long as the process lives. */
  notifier(id: string): Notifier;
  readonly feeds: FeedStore;
}

/** Absent: not found out, or unchanged. */
export interface Findings {
  problems?: FoundProblem[];
  failingTables?: FailingTable[];
  schemaError?: SchemaError | null;
  progress?: Progress;
  /** Whether the progress is further than ever before: an attempt that starts over is not. */
  isFurther?: boolean;
  schemaChanges?: ShapeChange[];
  sourceSchema?: SourceSchema;
  sourceUserId?: string;
  /** The setting `indexes` under the names that its columns have now. */
  indexes?: { before: IndexSetting[]; now: IndexSetting[] };
  /** Records that must be read again. */
  toRepair?: { tableId: string; recordId: string }[];
  /** The requests up to these times are done. */
  schemaCheckedAt?: Date;
  caughtUpAt?: Date;
}

/**
 * Called with the current state of the base when it has changed, and at first; undefined when the base no longer exists.
 *
 * @returns whether to call again after the next read, though nothing may have changed
 */
export type OnFacts = (facts: SyncFacts | undefined) => boolean;

/** A base that is watched, until this is disposed of. */
export interface Watching extends Disposable {
  /** When the latest facts were known to be current, performance.now(). */
  readonly readAt: number;
  /** Calls back after the next read, whether anything has changed or not. */
  callAgain(): void;
}

export interface ReplicaState {
  /** Of the server, its timeline and the database; null before a base's first lease in its database. */
  identity: string | null;
  /** The greatest epoch of the base in any database; 0 before its first lease. */
  epoch: number;
}
