/** Expects a replica to be equal to the sandbox base that it copies. */
import { expect } from "vitest";
import type { Base } from "../../core/control/bases";
import { compareToSource, isSameShape, type SourceDump } from "./compare-to-source";
import type { Fleet } from "./fleet";
import { until } from "./poll";

export { columnsByComment, tablesByComment } from "./compare-to-source";

/** Compares the whole replica with the sandbox's state. Returns the number of cells compared. */
export async function expectEqualToSource(fleet: Fleet, base: Base): Promise<number> {
  const sql = await fleet.reader(base);
  const dump = fleet.sandbox.control.dump(base.sourceBaseId) as unknown as SourceDump;
  const { cells, differences } = await compareToSource(sql, dump);
  expect(differences).toEqual([]);
  return cells;
}

/**
 * Waits until the replica has the source's tables and columns. The column of a new field appears when its table has
 * been read; meanwhile the feed is read for the existing columns.
 */
export async function untilSameShape(fleet: Fleet, base: Base, timeoutMs: number): Promise<void> {
  const sql = await fleet.reader(base);
  const dump = fleet.sandbox.control.dump(base.sourceBaseId) as unknown as SourceDump;
  const isSame = () => isSameShape(sql, dump);
  await until(isSame, { what: "tables and columns equal the source's", timeoutMs });
}
