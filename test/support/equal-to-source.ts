/** Expects a replica to be equal to the sandbox that it is a copy of. */
import { expect } from "vitest";
import type { Base } from "../../core/control";
import { compareToSource, type SourceDump } from "./compare-to-source";
import type { Fleet } from "./fleet";

export { columnsByComment, tablesByComment } from "./compare-to-source";

/** Compares the whole replica with the sandbox's own state. Returns cells compared. */
export async function expectEqualToSource(fleet: Fleet, base: Base): Promise<number> {
  const sql = await fleet.reader(base);
  const dump = fleet.sandbox.control.dump(base.sourceBaseId) as unknown as SourceDump;
  const { cells, differences } = await compareToSource(sql, dump);
  expect(differences).toEqual([]);
  return cells;
}
