/**
 * Any one part of any answer is damaged, again and again: everything else arrives, nothing vanishes, the damage is
 * named, and when it ends SQL equals the source.
 *
 * DAMAGE_ROUNDS sets the rounds in each mode, DAMAGE_SEED repeats a run's damages, and DAMAGE_MODE runs one mode.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Random } from "../../../apps/sandbox/random";
import { type SandboxHandle, startSandbox } from "../../../apps/sandbox/server";
import { type Base, deleteBase, getBase } from "../../../core/control/bases";
import { compareToSource, type SourceDump } from "../../support/compare-to-source";
import { type Damage, type DamagedSource, startDamagedSource } from "../../support/damaged-source";
import type { Fleet } from "../../support/fleet";
import { connectLive, startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";
import {
  type DamagedTable,
  payloadDamage,
  pick,
  recordDamage,
  schemaDamage,
  webhookDamages,
} from "../../support/random-damage";

const ROUNDS = Number(process.env.DAMAGE_ROUNDS ?? 24);
const SEED = Number(process.env.DAMAGE_SEED ?? Math.floor(Math.random() * 1e9));
/** Bases that are damaged at the same time, each in one part. */
const BASES = Number(process.env.DAMAGE_BASES ?? 8);
const SECOND_MS = 1000;

let fleet: Fleet;
let sandbox: SandboxHandle;
let source: DamagedSource;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, settings: { rateLimitOff: true } });
  source = await startDamagedSource(sandbox.url);
  fleet = await startLiveFleet({
    source: { ...sandbox, url: source.url } as SandboxHandle,
    env: { SCHEMA_POLL_SECONDS: "1", WORKER_CONCURRENCY: String(2 * BASES) },
  });
});
afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await source?.[Symbol.asyncDispose]();
  await sandbox?.stop();
});

type Mode = "sweep" | "rapid" | "live";

function createSource(): { sourceBaseId: string; key: string } {
  const { control } = sandbox;
  const rows = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ fields: { Name: `Row ${index}`, Size: index } }));
  const sourceBaseId = control.createBase({
    name: "Damaged",
    tables: [
      {
        name: "Things",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Size", type: "number" },
          { name: "Kind", type: "singleSelect", options: { choices: [{ name: "big" }, { name: "small" }] } },
        ],
        records: rows(6),
      },
      {
        name: "Others",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Size", type: "number" },
        ],
        records: rows(4),
      },
      // Never damaged: a change of its schema lets live mode ask for the schema.
      { name: "Renamed", fields: [{ name: "Name", type: "singleLineText" }], records: rows(0) },
    ],
  } as Parameters<typeof control.createBase>[0]);
  const user = { id: `usr${crypto.randomUUID()}`, email: "x@example.com" };
  return { sourceBaseId, key: control.createKey({ bases: { [sourceBaseId]: "create" }, user }) };
}

function dumpOf({ sourceBaseId }: Pick<Base, "sourceBaseId">) {
  return sandbox.control.dump(sourceBaseId) as unknown as SourceDump & { tables: DamagedTable[] };
}

function damagesOf(random: Random, mode: Mode, tables: DamagedTable[]): Damage[] {
  const kinds = mode === "live" ? 5 : 2;
  switch (random.int(1, kinds)) {
    case 1:
      return [recordDamage(random, tables[0]!)];
    case 2:
      return [schemaDamage(random, tables)];
    case 3:
      return webhookDamages(random);
    default:
      return [payloadDamage(random)];
  }
}

/** What differs from the source, apart from rows that may. */
async function differences(base: Base, except: ReadonlySet<string>, mayLackDeletions: boolean) {
  const sql = await fleet.reader(base);
  const dump = dumpOf(base);
  const { differences: all } = await compareToSource(sql, dump);
  if (except.size === 0 && !mayLackDeletions) return all;
  const left: string[] = [];
  for (const one of all) {
    if ([...except].some((id) => one.includes(` of ${id}`))) continue;
    if (one.startsWith("ids of ")) {
      const [shown, wanted] = one.slice(one.indexOf(": ") + 2).split(", not ");
      const has = new Set(JSON.parse(shown!) as string[]);
      const missing = (JSON.parse(wanted!) as string[]).filter((id) => !has.has(id));
      const more = [...has].filter((id) => !wanted!.includes(id));
      if (missing.length === 0 && (mayLackDeletions || more.length === 0)) continue;
    }
    left.push(one);
  }
  return left;
}

interface Told {
  longestMs: number;
  longestAfterMs: number;
  played: number;
  named: number;
}

async function round(base: Base, mode: Mode, random: Random, told: Told, label: string): Promise<void> {
  const { control } = sandbox;
  const { sourceBaseId } = base;
  const [things, others, renamed] = dumpOf(base).tables as unknown as [
    DamagedTable,
    DamagedTable,
    DamagedTable,
  ];
  const damages = damagesOf(random, mode, [things, others]);
  const what = `${label}: ${damages.map((one) => `${one.kind}, ${one.what}`).join("; ")}`;
  const except = new Set(damages.flatMap(({ records }) => [...records]));
  const free = things.records.filter(({ id }) => !except.has(id));
  const sql = await fleet.reader(base);
  const played = source.begin(sourceBaseId, damages);
  try {
    const stamp = `${label} ${random.int(0, 1e6)}`;
    control.updateRecords(sourceBaseId, things.id, [
      { id: free[0]!.id, fields: { Name: stamp, Size: random.int(0, 99) } },
      ...[...except].map((id) => ({ id, fields: { Name: `damaged ${stamp}` } })),
    ]);
    control.updateRecords(sourceBaseId, others.id, [
      { id: pick(random, others.records).id, fields: { Name: stamp } },
    ]);
    if (things.records.length < 8)
      control.createRecords(sourceBaseId, things.id, [{ fields: { Name: stamp } }]);
    else control.deleteRecords(sourceBaseId, things.id, [free.at(-1)!.id]);
    if (damages[0]!.kind === "schema")
      control.renameField(sourceBaseId, renamed.id, renamed.fields[0]!.id, `Name ${random.int(0, 1e6)}`);
    const from = performance.now();
    let last: string[] = [];
    let repeats = 0;
    await until(
      async () => {
        const now = await getBase(fleet.ctx.db, base.id);
        last = await differences(base, except, mode === "rapid");
        if (last.length > 0) return false;
        if (played.played() > 0 || now.error !== null) return true;
        // A webhook that was replaced after the changes reports none of them, so that its answers have nothing to damage.
        control.updateRecords(sourceBaseId, things.id, [
          { id: free[0]!.id, fields: { Name: `${stamp} ${++repeats}` } },
        ]);
        return false;
      },
      { what: `${what}: everything else arrives`, timeoutMs: 30 * SECOND_MS },
    ).catch((error) => {
      throw new Error(`${error.message} ${Bun.inspect(last)} played ${played.played()}`);
    });
    const tookMs = performance.now() - from;
    if (process.env.DAMAGE_ROUNDS && tookMs > 5000)
      process.stdout.write(`${Math.round(tookMs)} ms: ${what}\n`);
    told.longestMs = Math.max(told.longestMs, tookMs);
    told.played += played.played() > 0 ? 1 : 0;
    if (damages.some(({ isNamed }) => isNamed)) {
      const ids = [...except];
      await until(
        async () =>
          (
            await sql`select from _sync_issues where reason like 'unreadable: %' or record_id = any (${ids}::text[])`
          ).length > 0,
        { what: `${what}: it is named`, timeoutMs: 20 * SECOND_MS },
      );
      told.named++;
    }
  } finally {
    source.end(sourceBaseId);
  }
  const from = performance.now();
  let last: string[] = [];
  const isEqual = async () => {
    last = await differences(base, new Set(), false);
    return last.length === 0;
  };
  await until(isEqual, {
    what: `${what}: SQL equals the source after it`,
    timeoutMs: 60 * SECOND_MS,
  }).catch((error) => {
    throw new Error(`${error.message} ${Bun.inspect(last)}`);
  });
  told.longestAfterMs = Math.max(told.longestAfterMs, performance.now() - from);
}

const modes = (["sweep", "rapid", "live"] as const).filter(
  (mode) => (process.env.DAMAGE_MODE ?? mode) === mode,
);

test.for(modes)(
  "%s: one damaged part of an answer keeps nothing else from arriving, and nothing vanishes",
  { timeout: 60_000 + ROUNDS * 10_000 },
  async (mode) => {
    const told: Told = { longestMs: 0, longestAfterMs: 0, played: 0, named: 0 };
    let rounds = 0;
    const failures: string[] = [];
    await Promise.all(
      Array.from({ length: Math.min(BASES, ROUNDS) }, async (_, index) => {
        const random = new Random(`${SEED} ${mode} ${index}`);
        const { sourceBaseId, key } = createSource();
        let base: Base;
        if (mode === "live") base = await connectLive(fleet, sourceBaseId, undefined, key);
        else {
          const settings = { turbo: true, rapid: mode === "rapid" };
          base = await fleet.synced((await fleet.connect(sourceBaseId, settings, key)).id);
        }
        for (let number = index; number < ROUNDS; number += Math.min(BASES, ROUNDS)) {
          try {
            await round(base, mode, random, told, `seed ${SEED}, ${mode}, round ${number}`);
            rounds++;
          } catch (error) {
            failures.push(String((error as Error).message));
            break;
          }
        }
        await deleteBase(fleet.ctx, base);
      }),
    );
    if (process.env.DAMAGE_ROUNDS)
      process.stdout.write(`${mode}: ${rounds} rounds, ${JSON.stringify(told)}\n`);
    expect(failures).toEqual([]);
    expect(rounds).toBe(ROUNDS);
    expect(told.played).toBeGreaterThan(0);
  },
);
