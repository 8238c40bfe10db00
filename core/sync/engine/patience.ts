/**
 * Notices when the source no longer answers the requests for one table, or when the replica takes long to write its rows, so
 * that other tables need not wait for it, and when that is over.
 *
 * Time that a request waits for its permit does not count.
 */
import { linkedAbort } from "../../async";
import { asBasetideError, BasetideError, isBasetideError } from "../../errors";
import type { SourceTable } from "../../source";
import { SHORTEST_MS } from "../pacing";
import { isOfTable, type TableFailures } from "../state";
import { metered, type Reader } from "./reader";

/** The reader of one table. */
interface Watched extends Disposable {
  reader: Reader;
  /** The last failure since the source last answered; undefined while it is not late. */
  readonly silence: BasetideError | undefined;
  /** True while one write of the table's rows takes longer than `writing.patienceMs`. */
  readonly isWritingLong: boolean;
}

interface WritingPatience {
  patienceMs: number;
  onLong(): void;
}

/**
 * Returns a reader that behaves like `reader`.
 *
 * @param onSilent called when a request, with its retries, has not been answered for `patienceMs`
 * @param writing absent: writes may take any time
 */
export function watchAnswers(
  reader: Reader,
  patienceMs: number,
  onSilent: (error: BasetideError) => void,
  writing?: WritingPatience,
): Watched {
  let writeTimer: ReturnType<typeof setTimeout> | undefined;
  let isWritingLong = false;
  const written = () => {
    clearTimeout(writeTimer);
    isWritingLong = false;
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failure: BasetideError | undefined;
  let silence: BasetideError | undefined;
  const answered = () => {
    clearTimeout(timer);
    timer = undefined;
    failure = undefined;
    silence = undefined;
  };
  const late = () => {
    const text = `Airtable has not answered for ${Math.round(patienceMs / 1000)} s.`;
    silence = failure ?? new BasetideError("source_timeout", text);
    onSilent(silence);
  };
  return {
    reader: {
      ...reader,
      onRequest(kind) {
        timer ??= setTimeout(late, patienceMs);
        reader.onRequest?.(kind);
      },
      onAnswer() {
        answered();
        reader.onAnswer?.();
      },
      onFailure(error) {
        if (isBasetideError(error, "source_rate_limited")) answered();
        else failure = asBasetideError(error);
      },
      onWrite(isOver) {
        written();
        if (isOver || !writing) return;
        writeTimer = setTimeout(() => {
          isWritingLong = true;
          writing.onLong();
        }, writing.patienceMs);
      },
    },
    get silence() {
      return silence;
    },
    get isWritingLong() {
      return isWritingLong;
    },
    [Symbol.dispose]() {
      answered();
      written();
    },
  };
}

/**
 * Runs `work`, and gives its requests up when the source has not answered them for `patienceMs`.
 *
 * @throws the error of `work`, or the failure of the source
 */
export async function withPatience<T>(
  reader: Reader,
  patienceMs: number,
  work: (reader: Reader) => Promise<T>,
): Promise<T> {
  using stop = linkedAbort(reader.stop);
  using kill = linkedAbort(reader.kill);
  using watched = watchAnswers(reader, patienceMs, () => {
    stop.abort();
    kill.abort();
  });
  try {
    return await work({ ...watched.reader, stop: stop.signal, kill: kill.signal });
  } catch (error) {
    throw watched.silence ?? error;
  }
}

/**
 * Returns a reader for one table, in the modes in which each table is read by itself: the table fails as soon as it is
 * not answered for, and is then tried with one request at a time. What ends does not wait for it: a request that is late, or
 * a write that takes long, is given up as soon as `reader.stop` aborts.
 */
export function readerOfTable(
  reader: Reader,
  table: Pick<SourceTable, "id" | "name">,
  failing: TableFailures,
  onSilent?: () => void,
): Watched {
  const { stop } = reader;
  const kill = linkedAbort(reader.kill);
  const mayTryAgain = () => !failing.has(table.id) && (reader.mayTryAgain?.() ?? true);
  const giveUp = () => {
    if (stop.aborted && (watched.silence || watched.isWritingLong)) kill.abort();
  };
  const own = { ...reader, mayTryAgain, kill: kill.signal, writeSignal: kill.signal };
  const onLate = (error: BasetideError) => {
    failing.failed(table, error);
    onSilent?.();
    giveUp();
  };
  const writing = { patienceMs: SHORTEST_MS, onLong: giveUp };
  const watched = watchAnswers(own, failing.patienceMs(table.id), onLate, writing);
  stop.addEventListener("abort", giveUp, { once: true });
  const end = watched[Symbol.dispose];
  return Object.assign(watched, {
    [Symbol.dispose]() {
      stop.removeEventListener("abort", giveUp);
      kill[Symbol.dispose]();
      end();
    },
  });
}

/**
 * Asks for those tables that have failed and whose pause is over: an answer that does not come need not be waited for,
 * and then delays nothing. `failing` shows which can be read.
 *
 * @returns a promise that resolves once all of these requests have ended
 */
export function askFailing(
  failing: TableFailures,
  reader: Reader,
  tables: readonly SourceTable[],
): Promise<unknown> {
  if (failing.size === 0) return Promise.resolve();
  const due = tables.filter(
    ({ id }) => !failing.isReadable(id) && failing.dueInMs(id) <= 0 && !failing.probing.has(id),
  );
  return Promise.all(
    due.map(async (table) => {
      failing.probing.add(table.id);
      await ask(reader, table, failing);
    }),
  );
}

/** A request that is late does not keep the table from being asked for again, and still counts when it is answered. */
async function ask(reader: Reader, table: SourceTable, failing: TableFailures): Promise<void> {
  let askedAt = 0;
  let isLate = false;
  using watched = readerOfTable({ ...reader, mayTryAgain: () => false }, table, failing, () => {
    isLate = true;
    failing.probing.delete(table.id);
  });
  try {
    await metered(watched.reader).send((source, signal) => {
      askedAt = performance.now();
      return source.listPage(reader.sourceBaseId, table, {}, signal);
    });
    failing.answered(table.id, performance.now() - askedAt);
  } catch (caught) {
    const error = asBasetideError(caught);
    if (isOfTable(error) && !isLate) failing.failed(table, error);
  } finally {
    // Otherwise another request may be running.
    if (!isLate) failing.probing.delete(table.id);
  }
}
