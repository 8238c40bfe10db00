/** Brings into one replica the records that were written to another one of the same base: by reading them again. */

import { BasetideError, isBasetideError } from "../../errors";
import type { AttachmentSigner } from "../../replica";
import {
  applyRowImages,
  type CellIssue,
  compileMapper,
  type LoggedWrite,
  loadCatalog,
  mapRecords,
  type Replica,
  takeReadVersion,
  writesSince,
} from "../../replica";
import type { SourceRecord } from "../../source";
import { ask, listByIds, type Reader } from "./reader";

/** The recent-writes log is looked at this often: it keeps its entries for two minutes. */
const COLLECT_MS = 2000;
/** Most ids that the source takes at once. */
const BATCH = 100;
/** An image loses to whatever else was written since it was asked for: then it is asked for again. */
const MAX_TRIES = 10;

export type LoadSigner = () => Promise<AttachmentSigner | undefined>;

export interface WrittenElsewhere extends AsyncDisposable {
  /** Record ids by table id: all that were written since this began, or since it was last asked. */
  take(): Promise<Map<string, Set<string>>>;
}

/** Collects what is written to `replica` from now on. */
export async function writtenElsewhere(replica: Replica): Promise<WrittenElsewhere> {
  const start = await takeReadVersion(replica);
  const known = new Set<number>();
  let written: LoggedWrite[] = [];
  let collecting = Promise.resolve();
  const collect = async () => {
    // From the start each time: an entry may be committed after one with a later applied version.
    for (const one of await writesSince(replica, start)) {
      if (!known.has(one.appliedVersion)) written.push(one);
      known.add(one.appliedVersion);
    }
  };
  const timer = setInterval(() => {
    // What fails is looked at again, or fails whoever takes.
    collecting = collecting.then(collect).catch(() => {});
  }, COLLECT_MS);
  return {
    async take() {
      await collecting;
      await collect();
      const byTable = Map.groupBy(written, (one) => one.tableId);
      written = [];
      return new Map([...byTable].map(([id, all]) => [id, new Set(all.map((one) => one.recordId))]));
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await collecting;
    },
  };
}

/**
 * Reads these records anew and writes what they are now. A table that the replica has not is left to its syncs.
 *
 * @param loadSigner the base's, as it is then: asked after the catalog, so that its key is no older than the table's
 */
export async function copyWrites(
  replica: Replica,
  reader: Omit<Reader, "counts" | "onFirstRequest">,
  written: Map<string, Set<string>>,
  loadSigner: LoadSigner,
): Promise<void> {
  const counted: Reader = { ...reader, counts: { requests: 0, waitMs: 0 }, onFirstRequest: () => {} };
  for (const [tableId, ids] of written) {
    const all = [...ids];
    for (let from = 0; from < all.length; from += BATCH) {
      await copyRecords(replica, counted, tableId, all.slice(from, from + BATCH), loadSigner);
    }
  }
}

async function copyRecords(
  replica: Replica,
  reader: Reader,
  tableId: string,
  written: string[],
  loadSigner: LoadSigner,
): Promise<void> {
  let ids = written;
  for (let tries = 0; ids.length > 0; tries++) {
    if (tries === MAX_TRIES) {
      throw new BasetideError(
        "replica_busy",
        `Records of table ${tableId} are written faster than they are read`,
      );
    }
    const readVersion = await takeReadVersion(replica);
    const records = await readRecords(reader, tableId, ids);
    const table = (await loadCatalog(replica)).get(tableId);
    if (!table) return;
    const found = new Set(records.map((record) => record.id));
    const issues: CellIssue[] = [];
    const rows = mapRecords(compileMapper(table.spec, await loadSigner()), records, issues);
    const gone = ids.filter((id) => !found.has(id));
    // Of no lease: whoever syncs the replica by now goes on.
    const applied = await applyRowImages(replica, table, {
      epoch: null,
      readVersion,
      rows,
      gone,
      issues,
      records,
    });
    ids = applied.lost;
  }
}

/** Those of the records that are there, as they are now; at most 100. */
export async function readRecords(reader: Reader, tableId: string, ids: string[]): Promise<SourceRecord[]> {
  const { sourceBaseId } = reader;
  const table = { id: tableId, name: tableId, primaryFieldId: "", fields: [] };
  const found = new Map<string, SourceRecord>();
  for (const page of await listByIds(reader, table, ids)) {
    for (let index = 0; index < page.size; index++) found.set(page.id(index), page.record(index));
  }
  // Sources do answer "no records" for a table that has them: who is missing is asked for by name.
  for (const id of ids.filter((one) => !found.has(one))) {
    const record = await ask(reader, (signal, source) =>
      source.getRecord(sourceBaseId, tableId, id, signal).catch((error: unknown) => {
        // What the list does not have and nobody may read is gone.
        if (isBasetideError(error, "source_forbidden")) return null;
        throw error;
      }),
    );
    if (record) found.set(id, record);
  }
  return [...found.values()];
}
