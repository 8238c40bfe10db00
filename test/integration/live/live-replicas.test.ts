/**
 * Real and generated bases in live mode, end to end: users edit records, fields and tables at random; whenever the feed
 * has been read to its end, every cell is in SQL as at the source. Anything else that a sweep finds is counted as
 * missed, and there is nothing.
 *
 * LIVE_ROUNDS sets the number of comparisons; SEED=… repeats a run that failed.
 */
import { join } from "node:path";
import type postgres from "postgres";
import { describe, expect, test } from "vitest";
import { Random } from "../../../apps/sandbox/random";
import { type Base, getBase } from "../../../core/control/bases";
import { liftLimiter } from "../../support/consistency";
import { dataFolder, noDataReason } from "../../support/data";
import { expectEqualToSource, untilSameShape } from "../../support/equal-to-source";
import type { Fleet } from "../../support/fleet";
import { connectLive, readOut, startLiveFleet } from "../../support/live-fleet";
import { slowness } from "../../support/machine-speed";
import { RandomEdits } from "../../support/random-edits";

const ROUNDS = Number(process.env.LIVE_ROUNDS ?? 2);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
const EDITS = 25;
const SCHEMA_EDITS = 6;
const ROUND_MS = 60_000;
/**
 * In the first batch, a list of a whole table, as sweeps request it, is delayed this long, so that sweeps do not help.
 */
const SLOW_SWEEP = {
  kind: "hang",
  path: '"returnFieldsByFieldId":true(,"offset"|})',
  delayMs: 2500,
} as const;
/** Edits remove a few records; a partial table lacks more. */
const LEAST_PART = 0.7;

type Control = Fleet["sandbox"]["control"];

interface Source {
  name: string;
  /** Undefined if its data is missing. */
  create: ((control: Control) => string) | undefined;
}

const load = (folder: string, computed: "frozen" | "live"): Source => ({
  name: `${folder} (computed cells ${computed})`,
  create: dataFolder ? (control) => control.load({ folder: join(dataFolder!, folder), computed }) : undefined,
});

const sources: Source[] = [
  load("cmip7-data-request", "live"),
  load("unlocking-the-airwaves", "live"),
  load("unlocking-the-airwaves/earlier-2021-05-04", "frozen"),
  {
    name: "a generated base",
    create: (control) => control.generate({ records: 900, tables: 3, fieldsPerTable: 40, seed: SEED }),
  },
];

// Two at a time, which mostly wait. Each has its own service: the delivery of notifications is a setting of the whole sandbox.
describe.for([
  ["bases with computed cells that follow edits", sources.slice(0, 2)],
  ["other bases", sources.slice(2)],
] as const)("%s", ([, pair]) => {
  test.concurrent.for(pair)(
    "in live mode, every cell of $name is in SQL whenever the feed is read to its end",
    {
      timeout: (60_000 + ROUNDS * ROUND_MS) * slowness(),
      tags: "once",
    },
    async ({ create }, { skip }) => {
      if (!create) return skip(noDataReason);
      const random = new Random(SEED);
      await using fleet = await startLiveFleet({ sandbox: { settings: { rateLimitOff: true } } });
      await liftLimiter(fleet);
      const { control } = fleet.sandbox;
      const sourceId = create(control);
      const base = await connectLive(fleet, sourceId);
      await using watcher = watchCounts(fleet, base);
      const edits = new RandomEdits(control, sourceId, random);
      const { id: slow } = control.addFault({ ...SLOW_SWEEP, base: sourceId });
      for (let round = 0; round < ROUNDS; round++) {
        if (round > 0) control.clearFaults(slow);
        control.settings({
          webhooks: {
            computedCells: round === 0 ? "not emitted" : random.pick(["emitted", "not emitted"] as const),
            recordsPerPayload: random.pick([1, 10, 500]),
            pingDuplication: random.pick([0, 0.5]),
          },
        });
        const kinds = [
          ...Array(EDITS).fill("records"),
          ...Array(round === 0 ? 0 : SCHEMA_EDITS).fill("schema"),
        ];
        while (kinds.length > 0) {
          const [kind] = kinds.splice(random.int(0, kinds.length - 1), 1);
          if (kind === "records") edits.editRecords();
          else edits.editSchema();
          // The service works meanwhile.
          await Bun.sleep(random.int(0, 40));
        }
        await readOut(fleet, base, ROUND_MS);
        await untilSameShape(fleet, base, ROUND_MS);
        const compared = await expectEqualToSource(fleet, base);
        expect(compared, `SEED=${SEED}`).toBeGreaterThan(5000);
      }
      expect(watcher.wrong).toEqual([]);
      expect((await getBase(fleet.ctx.db, base.id)).live, `SEED=${SEED}`).toMatchObject({
        missed: 0,
        driftedSince: null,
      });
    },
  );
});

/** Reads all tables in a loop, under any names, and records which were seen half filled. */
function watchCounts(fleet: Fleet, base: Base): { wrong: string[] } & AsyncDisposable {
  const wrong: string[] = [];
  const usual = new Map<string, number>();
  let isOver = false;
  const look = async (sql: postgres.Sql) => {
    const tables = await sql<{ name: string; id: string }[]>`
      select relname as name, substring(obj_description(oid) from 'tbl[0-9A-Za-z]{14}') as id from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname !~ '^_'`;
    for (const { name, id } of tables) {
      const [row] = await sql.unsafe(`select count(*)::int as count from public."${name}"`);
      const least = usual.get(id);
      if (least === undefined) usual.set(id, row!.count * LEAST_PART);
      else if (row!.count < least) wrong.push(`${id} has ${row!.count} rows, not ${least} and more`);
    }
  };
  const work = (async () => {
    const sql = await fleet.reader(base);
    while (!isOver) {
      const from = performance.now();
      await look(sql).catch((error: { code?: string }) => {
        // It has been renamed, or deleted.
        if (error.code !== "42P01") throw error;
      });
      // A quarter of the time: without a pause, the reader alone keeps a core busy.
      await Bun.sleep(3 * (performance.now() - from));
    }
  })();
  return {
    wrong,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await work;
    },
  };
}
