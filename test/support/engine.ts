/**
 * A sync engine for tests: a source in memory, a real replica, no rate limit. Ends with the test, or when it is
 * disposed of.
 */
import { onTestFinished, type TestContext } from "vitest";
import type { Base, Progress } from "../../core/control/bases";
import { claimEpoch, type ShapeChange } from "../../core/replica";
import { type SyncInput, syncBase } from "../../core/sync/engine";
import type { RunReport } from "../../core/sync/host";
import { BaseCache } from "../../core/sync/state";
import { engineInput } from "./engine-input";
import { FakeSource } from "./fake-source";
import { dumpTable, type TestReplica, testReplica } from "./replica";

export interface SyncOptions {
  isForced?: boolean;
  settings?: Partial<Base["settings"]>;
  /** 0 unless given: each sync checks the schema when it starts. */
  schemaPollMs?: number;
  onSchemaError?: SyncInput["onSchemaError"];
}

export interface Engine extends AsyncDisposable {
  source: FakeSource;
  replica: TestReplica;
  cache: BaseCache;
  /** Pauses that the source requested, ms. */
  blocks: number[];
  progress: Progress[];
  /** Every schema change that was applied. */
  changes: ShapeChange[];
  /** Requested schema checks that were answered. */
  looks: Date[];
  sync(options?: SyncOptions): Promise<RunReport>;
  /** The input of a sync. */
  input(options?: SyncOptions): SyncInput;
  /** All rows of a table. */
  rows(table?: string): Promise<unknown[]>;
  /** Continues as another worker would: with a new epoch and empty caches. */
  restart(): Promise<void>;
}

/**
 * @param options.emptySpellMs how long the source must keep answering that there is nothing
 * @param options.source an existing source; a new one unless given
 * @param options.over changes the URL by which the service reaches the replica
 * @param options.onFinished the `onTestFinished` of a test's context, which a concurrent test must give
 */
export async function testEngine(
  options: {
    emptySpellMs?: number;
    source?: FakeSource;
    over?: (url: string) => string;
    onFinished?: TestContext["onTestFinished"];
  } = {},
): Promise<Engine> {
  const { emptySpellMs = 300, source = new FakeSource(), over, onFinished = onTestFinished } = options;
  const replica = await testReplica(undefined, over);
  let isGone = false;
  const dispose = async () => {
    if (!isGone) await replica[Symbol.asyncDispose]();
    isGone = true;
  };
  onFinished(dispose);
  let { epoch } = replica;
  const made: Engine = {
    source,
    replica,
    cache: new BaseCache(epoch, emptySpellMs),
    blocks: [],
    progress: [],
    changes: [],
    looks: [],
    sync: (options) => syncBase(made.input(options)),
    input: ({ isForced = false, settings = {}, schemaPollMs = 0, onSchemaError } = {}) => ({
      ...engineInput({
        replica: replica.replica,
        epoch,
        cache: made.cache,
        connection: source.connection(),
        settings,
        onBlock: (ms) => made.blocks.push(ms),
      }),
      schemaPollMs,
      isForced,
      onSchemaError,
      onProgress: (progress) => made.progress.push(structuredClone(progress)),
      onShapeChange: (changes) => made.changes.push(...changes),
      onRequestedSchemaCheck: (requestedAt) => made.looks.push(requestedAt),
    }),
    rows: (table = "people") => dumpTable(replica.replica.sql, table),
    async restart() {
      epoch = await claimEpoch(replica.replica);
      made.cache = new BaseCache(epoch, emptySpellMs);
    },
    [Symbol.asyncDispose]: dispose,
  };
  return made;
}
