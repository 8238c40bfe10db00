/** What a worker that gives a base up hands to the next one, and when the next one does not use it. */
import { expect, test } from "vitest";
import { getBase, replicaTarget } from "../../../core/control/bases";
import {
  applyRowImages,
  claimEpoch,
  compileMapper,
  loadCatalog,
  mapRecords,
  openReplica,
  type Replica,
  takeReadVersion,
} from "../../../core/replica";
import { holdLease } from "../../../core/sync/lease";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { sourceRecord } from "../../support/source-records";
import { syncContext } from "../../support/sync-context";

const RECORDS = 150;

/** From now on, the ids of all row images are in `_applied`. */
async function watchApplied({ sql }: Replica): Promise<void> {
  const [made] = await sql<{ definition: string }[]>`
    select pg_get_functiondef('public_swap.make_apply(text)'::regprocedure) as definition`;
  const watched = made!.definition.replace(
    "  lock table",
    "  insert into public_swap._applied values (%3$L, p_ids);\n  lock table",
  );
  expect(watched).not.toBe(made!.definition);
  await sql.unsafe("create table public_swap._applied (table_id text, ids text[])");
  await sql.unsafe(watched);
  await sql`select public_swap.make_apply(table_id) from public_swap._tables`;
}

test("the next worker compares only what others have written since, unless a lease or a loss came between", {
  timeout: 60_000,
}, async () => {
  await using releases = new AsyncDisposableStack();
  const fleet = releases.use(await startFleet({ workers: 0, sandbox: { settings: { rateLimitOff: true } } }));
  const { ctx, sandbox } = fleet;
  const name = { name: "Name", type: "singleLineText" as const };
  const records = Array.from({ length: RECORDS }, (_, index) => ({ fields: { Name: `task ${index}` } }));
  const files = { name: "Files", type: "multipleAttachments" as const };
  const sourceId = sandbox.control.createBase({
    tables: [
      { name: "Tasks", fields: [name], records },
      { name: "Papers", fields: [name, files], records: [{ fields: { Name: "paper" } }] },
    ],
  });
  const { id } = await fleet.connect(sourceId, { live: false });
  const replica = openReplica(await replicaTarget(ctx, await getBase(ctx.db, id)));
  releases.defer(() => replica.close());
  const { sql } = replica;

  /** Holds a lease as a new worker would, for two sweeps. @returns how many rows of each table it has compared */
  async function work(): Promise<Record<string, number>> {
    const held = syncContext(ctx);
    await ctx.db`update bases set recent_sweep_ms = '{}' where id = ${id}`;
    const stop = new AbortController();
    const isOver = holdLease(held, id, new Map(), { stop: stop.signal, kill: new AbortController().signal });
    await until(async () => (await getBase(ctx.db, id)).recentSweepMs.length >= 2, { what: "two sweeps" });
    stop.abort();
    expect(await isOver).toBe(0);
    const [watched] = await sql`select to_regclass('public_swap._applied') as is`;
    if (!watched!.is) return {};
    const rows = await sql<{ name: string; ids: number }[]>`
      select t.name, count(distinct id)::int as ids from public_swap._applied as a
        join public_swap._tables as t using (table_id) cross join unnest(a.ids) as id group by 1`;
    await sql`truncate public_swap._applied`;
    return Object.fromEntries(rows.map((row) => [row.name, row.ids]));
  }

  await work();
  await watchApplied(replica);
  // Fingerprints of attachments depend on the process.
  expect(await work()).toEqual({ papers: 1 });
  expect(await work()).toEqual({ papers: 1 });

  const catalog = await loadCatalog(replica);
  const tasks = [...catalog.values()].find(({ spec }) => spec.name === "tasks")!;
  const [first] = await sql<{ id: string }[]>`select id from public.tasks where name = 'task 0'`;
  const written = [sourceRecord(first!.id, { [tasks.spec.columns[0]!.fieldId]: "written" })];
  await applyRowImages(replica, tasks, {
    epoch: null,
    readVersion: await takeReadVersion(replica),
    rows: mapRecords(compileMapper(tasks.spec), written, []),
    gone: [],
    issues: [],
    records: written,
  });
  await sql`truncate public_swap._applied`;
  expect(await work()).toEqual({ tasks: 1, papers: 1 });
  expect(await sql`select from public.tasks where name like 'task %'`).toHaveLength(RECORDS);

  const all = { tasks: RECORDS, papers: 1 };
  for (const [what, between] of [
    ["another lease", () => claimEpoch(replica)],
    ["another program", () => sql`update public_swap._known_rows set program = 'another'`],
    ["other bytes", () => sql`update public_swap._known_rows set fingerprints = '\\x0102'`],
    ["another shape", () => sql`update public_swap._known_rows set shape = shape - 1`],
    [
      "an old comparison",
      () => sql`update public_swap._known_rows set compared_at = now() - interval '12 hours'`,
    ],
    ["emptied tables", () => sql`truncate public.tasks`],
  ] as const) {
    await between();
    expect(await work(), what).toEqual(all);
    expect(await sql`select from public.tasks`, what).toHaveLength(RECORDS);
    expect(await work(), what).toEqual({ papers: 1 });
  }

  // A worker that is stopped before its lease begins takes nothing from the one that has the base by now.
  const epoch = () => sql`select epoch from public_swap._state`;
  const before = await epoch();
  const held = syncContext(ctx);
  const stop = new AbortController();
  const base = async (baseId: string) => {
    const found = await held.host.base(baseId);
    stop.abort();
    return found;
  };
  const stopped = { ...held, host: { ...held.host, base } };
  const kill = new AbortController().signal;
  expect(await holdLease(stopped, id, new Map(), { stop: stop.signal, kill })).toBe(0);
  expect(await epoch()).toEqual(before);
});
