/** Readers that query a database without a pause, and report every error that they meet. */
import { readerOf } from "./replica";

/**
 * Runs `readers` sessions, each with one query of `queries` after the other, while `work` runs. Fails with the first
 * error of any of them.
 *
 * @param queries called before each query: the ones that must work now
 * @returns the number of queries that were answered
 */
export async function whileReading(
  url: string,
  readers: number,
  queries: () => readonly string[],
  work: (check: () => void) => Promise<void>,
): Promise<number> {
  let isOver = false;
  let answered = 0;
  const errors: string[] = [];
  const read = async (nth: number) => {
    await using sql = readerOf(url);
    for (let turn = nth; !isOver && errors.length === 0; turn++) {
      const known = queries();
      const query = known[turn % known.length]!;
      try {
        await sql.unsafe(query);
        answered++;
      } catch (error) {
        // A query that was withdrawn while it ran may fail.
        if (queries().includes(query)) errors.push(`${query}: ${(error as Error).message}`);
      }
    }
  };
  const reading = Array.from({ length: readers }, (_, nth) => read(nth));
  const check = () => {
    if (errors.length > 0) throw new Error(errors.join("\n"));
  };
  try {
    await work(check);
  } finally {
    isOver = true;
    await Promise.all(reading);
  }
  check();
  return answered;
}
