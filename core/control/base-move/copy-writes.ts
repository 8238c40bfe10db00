/** Copies records that were written to one replica of a base into another one, by reading them again. */

import { BasetideError } from "../../errors";
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
import { limitsOfKey } from "../../source";
import { metered, oddIssues, type Reader } from "../../sync/engine";

/** How often the recent-writes log is read: it keeps its entries for two minutes. */
const COLLECT_MS = 2000;
/** An image loses to any write that was applied since it was requested; then it is requested again. */
const MAX_TRIES = 10;

export type LoadSigner = () => Promise<AttachmentSigner | undefined>;

export interface WrittenElsewhere extends AsyncDisposable {
  /** Returns record ids by table id: all records that were written since this began, or since the previous call. */
  take(): Promise<Map<string, Set<string>>>;
}

/** Collects the records that are written to `replica` from now on. */
export async function writtenElsewhere(replica: Replica): Promise<WrittenElsewhere> {
  const start = await takeReadVersion(replica);
  const known = new Set<number>();
  let written: LoggedWrite[] = [];
  let collecting = Promise.resolve();
  const collect = async () => {
    // Reads from the start each time: an entry may be committed after one with a later applied version.
    for (const one of await writesSince(replica, start)) {
      if (!known.has(one.appliedVersion)) written.push(one);
      known.add(one.appliedVersion);
    }
  };
  const timer = setInterval(() => {
    // A failure is retried by the next collection, or reported by `take`.
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
 * Reads these records again and writes their current state. A table that the replica does not have is left to its
 * syncs.
 *
 * @param loadSigner loads the base's current signer. It is called after the catalog is read, so that its key is no
 *   older than the table's
 */
export async function copyWrites(
  replica: Replica,
  reader: Omit<Reader, "counts" | "onFirstRequest">,
  written: Map<string, Set<string>>,
  loadSigner: LoadSigner,
): Promise<void> {
  const counted: Reader = { ...reader, counts: { requests: 0, waitMs: 0 } };
  const { pageSize } = limitsOfKey(reader.quotaKey);
  for (const [tableId, ids] of written) {
    const all = [...ids];
    for (let from = 0; from < all.length; from += pageSize) {
      await copyRecords(replica, counted, tableId, all.slice(from, from + pageSize), loadSigner);
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
        `Records of table ${tableId} are written faster than they can be read`,
      );
    }
    const readVersion = await takeReadVersion(replica);
    const { records, gone } = await metered(reader).readRecords(tableId, ids);
    const table = (await loadCatalog(replica)).get(tableId);
    if (!table) return;
    const issues: CellIssue[] = [];
    const rows = mapRecords(compileMapper(table.spec, await loadSigner()), records, issues);
    // I6. The field may have had another type for a moment.
    if (tries === 0 && oddIssues(table.spec, issues).length > 0) continue;
    // Without an epoch: a worker that already syncs this replica is not affected.
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
