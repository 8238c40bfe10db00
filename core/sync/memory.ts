/** What a worker remembers of a base from one sync to the next. Losing it costs comparisons in SQL, nothing else. */
import type { CatalogTable, RecordMapper } from "../replica";
import { compileMapper } from "../replica";
import type { SourceSchema } from "../source/types";
import { Fingerprints } from "./fingerprints";
import { EMPTY_SPELL_MS, MassDeletion } from "./mass-deletion";

export interface TableMemory {
  live: CatalogTable;
  map: RecordMapper;
  fingerprints: Fingerprints;
  /** Do the fingerprints know every row of the replica? Not before a whole sweep. */
  isComplete: boolean;
  /** The journal has been read up to this stamp. */
  journalStamp: number;
  massDeletion: MassDeletion;
}

export interface BaseMemory {
  /** The lease that these memories are of: they hold only if nobody else had the base in between. */
  epoch: number;
  schema: SourceSchema | null;
  /** performance.now() of the last look at the source's schema. */
  schemaSeenAt: number;
  /** By the source's table id. */
  tables: Map<string, TableMemory>;
  /** Points in time with the ticket of then; the journal is trimmed to an old one. */
  trimPoints: { at: number; ticket: number }[];
  /** How long the source must go on saying that there is nothing before it is believed. */
  emptySpellMs: number;
}

export function emptyMemory(epoch: number, emptySpellMs = EMPTY_SPELL_MS): BaseMemory {
  return {
    epoch,
    schema: null,
    schemaSeenAt: Number.NEGATIVE_INFINITY,
    tables: new Map(),
    trimPoints: [],
    emptySpellMs,
  };
}

/**
 * The memory of a table as it is live now. Its fingerprints outlive a change in place: that renames columns, but a
 * record still means the same row. A rebuild makes a memory of its own.
 */
export function tableMemory(memory: BaseMemory, live: CatalogTable): TableMemory {
  const known = memory.tables.get(live.spec.tableId);
  if (known?.live.shape === live.shape) return known;
  const table: TableMemory = {
    live,
    map: compileMapper(live.spec),
    fingerprints: known?.fingerprints ?? new Fingerprints(),
    isComplete: known?.isComplete ?? false,
    journalStamp: known?.journalStamp ?? 0,
    massDeletion: known?.massDeletion ?? new MassDeletion(memory.emptySpellMs),
  };
  memory.tables.set(live.spec.tableId, table);
  return table;
}
