/**
 * Requests rows by id that a read of their table did not return.
 *
 * I2. A row is deleted only on evidence. Lists sometimes leave records out (a lost page, a lost iterator), and
 * sometimes answer "no records" with status 200 for a table that has thousands, for as long as a minute. An answer
 * that contains any record is trusted about the other requested ones. So each request includes a witness: a record
 * that existed a moment ago. If no witness is left, some of the missing records are requested one by one, which is a
 * different kind of answer. No such answer tells what a view shows: for a table of which only a view is copied, "no
 * records" is believed once it has lasted longer than such a spell.
 */

import { wait } from "../../async";
import { BasetideError } from "../../errors";
import { limitsOfKey, type RecordPage, type SourceTable } from "../../source";
import { MANY_TRIES } from "../pacing";
import type { VersionedPage } from "../state";
import { metered, type Reader } from "./reader";

/**
 * Rows that are requested one by one: a random sample of ten is unlikely to miss the half of a table that still
 * exists.
 */
const SAMPLE = 10;

interface Missing {
  /** Ids of the rows that the read did not return. */
  ids: string[];
  /** A record that it returned, if any. */
  witness: string | undefined;
  /** How long a spell of empty answers may last. */
  emptySpellMs: number;
}

interface Evidence {
  /** The records that exist, with a read version that was taken before they were requested. */
  found: VersionedPage[];
  /** The records that do not exist, and the same read version. */
  gone: string[];
  /** The records that exist and cannot be read: their rows stay. */
  unreadable: string[];
  readVersion: number;
}

/**
 * Determines what happened to the missing rows, a hundred at a time.
 *
 * @throws BasetideError `source_bad_answer` when the source keeps leaving out records that it has
 */
export async function* evidenceOf(
  reader: Reader,
  table: SourceTable,
  { ids, witness, emptySpellMs }: Missing,
): AsyncGenerator<Evidence, void, void> {
  const { isRecordId } = reader.connection;
  // These rows were not written by a sync: the source cannot confirm them.
  const strange = ids.filter((id) => !isRecordId(id));
  if (strange.length > 0)
    yield { found: [], gone: strange, unreadable: [], readVersion: await freshReadVersion(reader) };
  const asked = ids.filter(isRecordId);
  // The last id of a request is the witness's.
  const batchSize = limitsOfKey(reader.quotaKey).pageSize - 1;
  const until = performance.now() + emptySpellMs;
  let [known, isNoneLeft] = [witness, false];
  for (let from = 0; from < asked.length; ) {
    const batch = asked.slice(from, from + batchSize);
    const isSpellOver = performance.now() >= until;
    const readVersion = await freshReadVersion(reader);
    const wanted = known === undefined ? batch : [...batch, known];
    const pages = await metered(reader).listByIds(table, wanted);
    const { read, flawed, isUnclear } = foundIn(pages, wanted);
    const found = new Set([...read, ...flawed.keys()]);
    if (isUnclear) for (const id of await existing(reader, table, batch, found)) found.add(id);
    if (found.size === 0 && table.viewId !== undefined) isNoneLeft ||= isSpellOver;
    else if (found.size === 0 && !isNoneLeft) {
      const suspects = known === undefined ? sample(asked) : [known, ...sample(asked)];
      known = await firstThere(reader, table, suspects);
      isNoneLeft = known === undefined;
    }
    if (found.size > 0 || isNoneLeft) {
      const gone = batch.filter((id) => !found.has(id));
      const unreadable = batch.filter((id) => found.has(id) && !read.has(id));
      yield { found: pages.map((page) => ({ page, readVersion })), gone, unreadable, readVersion };
      known ??= found.values().next().value;
      from += batchSize;
    } else if (!isSpellOver) {
      await wait(emptySpellMs / MANY_TRIES, reader.stop);
    } else {
      throw new BasetideError(
        "source_bad_answer",
        `Airtable's lists of table ${table.id} omit records that exist.`,
      );
    }
  }
}

/**
 * Returns the records of an answer that can be read, and those that cannot. It is unclear about the requested records
 * that it lacks if one of its records may be any of them: one without an id, or with that of another.
 */
export function foundIn(pages: readonly RecordPage[], wanted: readonly string[]) {
  const read = new Set(pages.flatMap((page) => Array.from({ length: page.size }, (_, at) => page.id(at))));
  const unreadable = pages.flatMap((page) => page.unreadable ?? []);
  const flawed = new Map(unreadable.flatMap(({ id, reason }) => (id === undefined ? [] : [[id, reason]])));
  const isUnclear =
    unreadable.some(({ id }) => id === undefined || read.has(id)) ||
    [...read].some((id) => !wanted.includes(id));
  return { read, flawed, isUnclear };
}

/** Returns those of the batch's records that are not found yet, and exist when they are requested by themselves. */
async function existing(
  reader: Reader,
  table: SourceTable,
  batch: string[],
  found: ReadonlySet<string>,
): Promise<string[]> {
  const there: string[] = [];
  for (const id of batch)
    if (!found.has(id) && (await metered(reader).hasRecord(table.id, id))) there.push(id);
  return there;
}

/** Returns the first of these records that exists when it is requested by itself. */
async function firstThere(reader: Reader, table: SourceTable, ids: string[]): Promise<string | undefined> {
  for (const id of ids) {
    if (await metered(reader).hasRecord(table.id, id)) return id;
  }
  return undefined;
}

/** Returns a read version that is newer than everything applied before now. */
function freshReadVersion({ readVersions }: Reader): Promise<number> {
  readVersions.renew();
  return readVersions.current();
}

/** Returns a random sample of the ids: records that were deleted together are usually adjacent. */
function sample(ids: readonly string[]): string[] {
  const left = [...ids];
  const taken: string[] = [];
  while (left.length > 0 && taken.length < SAMPLE) {
    taken.push(...left.splice(Math.floor(Math.random() * left.length), 1));
  }
  return taken;
}
