/**
 * Asks the source by id for rows that a read of their table did not give.
 *
 * I2. A row is deleted only on evidence: lists do leave records out (a page that is lost, an iterator that lost its place),
 * and do answer "no records", with status 200, for a table that has thousands, for as long as a minute. An answer that
 * has any record is believed about the others that it was asked for. So each request asks for a witness, too: a record
 * that was there a moment ago. Where none is left, some of the missing are asked for one by one, which is another kind of
 * answer.
 */

import { wait } from "../../async";
import { BasetideError, isBasetideError } from "../../errors";
import type { SourceTable } from "../../source";
import { ask, listByIds, type Reader, type VersionedPage } from "./reader";

/** While the source answers "no records", it is asked so many times again. */
const TRIES = 30;
/** Missing rows that one request asks for: the hundredth id is the witness's. */
const BATCH = 99;
/** Rows that are asked for one by one: ten at random do not miss the half of a table that is still there. */
const SAMPLE = 10;

export interface Missing {
  /** Ids of the rows that the read did not give. */
  ids: string[];
  /** A record that it gave, if any. */
  witness: string | undefined;
  /** How long a spell of empty answers may last. */
  emptySpellMs: number;
}

export interface Evidence {
  /** Those that are there, with a read version that was taken before they were asked for. */
  found: VersionedPage[];
  /** Those that are not, and the read version of the same moment. */
  gone: string[];
  readVersion: number;
}

/**
 * What became of the missing rows, a hundred at a time.
 *
 * @throws BasetideError `source_bad_answer` when the source goes on leaving out records that it has
 */
export async function* evidenceOf(
  reader: Reader,
  table: SourceTable,
  { ids, witness, emptySpellMs }: Missing,
): AsyncGenerator<Evidence, void, void> {
  const { isRecordId } = reader.connection;
  // Somebody else put that there: the source has nothing to say of it.
  const strange = ids.filter((id) => !isRecordId(id));
  if (strange.length > 0) yield { found: [], gone: strange, readVersion: await freshReadVersion(reader) };
  const asked = ids.filter(isRecordId);
  const until = performance.now() + emptySpellMs;
  let [known, isNoneLeft] = [witness, false];
  for (let from = 0; from < asked.length; ) {
    const batch = asked.slice(from, from + BATCH);
    const readVersion = await freshReadVersion(reader);
    const pages = await listByIds(reader, table, known === undefined ? batch : [...batch, known]);
    const found = new Set(pages.flatMap((page) => Array.from({ length: page.size }, (_, at) => page.id(at))));
    if (found.size === 0 && !isNoneLeft) {
      const suspects = known === undefined ? sample(asked) : [known, ...sample(asked)];
      known = await firstThere(reader, table, suspects);
      isNoneLeft = known === undefined;
    }
    if (found.size > 0 || isNoneLeft) {
      const gone = batch.filter((id) => !found.has(id));
      yield { found: pages.map((page) => ({ page, readVersion })), gone, readVersion };
      known ??= found.values().next().value;
      from += BATCH;
    } else if (performance.now() < until) {
      await wait(emptySpellMs / TRIES, reader.stop);
    } else {
      throw new BasetideError(
        "source_bad_answer",
        `Lists of table ${table.id} leave out records that it has.`,
      );
    }
  }
}

/** The first of these records that is there when it is asked for by itself. */
async function firstThere(reader: Reader, table: SourceTable, ids: string[]): Promise<string | undefined> {
  const { sourceBaseId } = reader;
  for (const id of ids) {
    const record = await ask(reader, (signal, source) =>
      source.getRecord(sourceBaseId, table.id, id, signal).catch((error: unknown) => {
        // The key has just listed the table: a record of it that may not be read is gone.
        if (isBasetideError(error, "source_forbidden")) return null;
        throw error;
      }),
    );
    if (record) return id;
  }
  return undefined;
}

/** A read version that whatever was applied before now loses to. */
function freshReadVersion({ readVersions }: Reader): Promise<number> {
  readVersions.renew();
  return readVersions.current();
}

/** Some of the ids, at random: those that were deleted together lie together. */
function sample(ids: readonly string[]): string[] {
  const left = [...ids];
  const taken: string[] = [];
  while (left.length > 0 && taken.length < SAMPLE) {
    taken.push(...left.splice(Math.floor(Math.random() * left.length), 1));
  }
  return taken;
}
