/** Connects the live base that `rest.ts` clones (`clone-bases.ts`). */
import { type Base, getBase } from "../../core/control/bases";
import type { Fleet } from "../support/fleet";
import { until } from "../support/poll";
import type { SandboxProcess } from "../support/sandbox-process";
import { userOf } from "./clone-bases";

const TABLES = 2;
const FIELDS = 15;

/** Connects the pattern, with a worker that runs meanwhile. */
export async function connectPattern(
  fleet: Fleet<SandboxProcess>,
  source: SandboxProcess,
  records: number,
): Promise<Base> {
  const { db } = fleet.ctx;
  const { baseId } = await createPattern(source, records);
  const { id } = await fleet.connect(baseId, { live: true, turbo: true }, (await userOf(source, 0)).key);
  const isOn = () =>
    db`select from live_feeds where base_id = ${id} and state = 'on' and gap_since is null and read_at is not null`;
  await until(async () => (await isOn()).length > 0, { what: "the pattern is live", timeoutMs: 60_000 });
  return getBase(db, id);
}

/** Creates the base at the source. */
export async function createPattern(
  source: SandboxProcess,
  records: number,
): Promise<{ baseId: string; tableId: string }> {
  const tables = tablesOf(records);
  const { baseId } = (await source.call("POST", "bases", { tables })) as { baseId: string };
  return { baseId, tableId: tables[0]!.id };
}

function tablesOf(records: number): { id: string }[] {
  const id = (prefix: string, nth: number) => `${prefix}Pattern${String(nth).padStart(7, "0")}`;
  return Array.from({ length: TABLES }, (_, nth) => ({
    id: id("tbl", nth),
    name: `Table ${nth}`,
    fields: Array.from({ length: FIELDS }, (__, index) => ({
      id: id("fld", nth * FIELDS + index),
      name: `Field ${index}`,
      type: index % 3 === 1 ? "number" : "singleLineText",
      ...(index % 3 === 1 && { options: { precision: 0 } }),
    })),
    records: Array.from({ length: records / TABLES }, (__, index) => ({
      id: id("rec", nth * records + index),
      fields: { "Field 0": `Task ${index}`, "Field 1": index },
    })),
  }));
}
