/**
 * S2: whatever is broken, within a minute the status names it, or SQL equals the source; and once it is mended, the base
 * is well again. S3: the pages of a base that is not current say why, claim nothing that is not so, and offer only what
 * works. STATUS_ROUNDS repeats it with further faults, STATUS_SEED repeats a run.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { Random } from "../../../apps/sandbox/random";
import type { Account } from "../../../core/control/accounts";
import { type Base, getBase } from "../../../core/control/bases";
import { indicatorOf, statusOf } from "../../../core/control/status";
import { randomBreakage } from "../../support/breakages";
import { compareToSource, type SourceDump } from "../../support/compare-to-source";
import { asker, authByHeader } from "../../support/console";
import type { Fleet } from "../../support/fleet";
import { startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";

const ROUNDS = Number(process.env.STATUS_ROUNDS ?? 1);
const SEED = Number(process.env.STATUS_SEED ?? 1);
/** A short run checks that a problem is named; a long one also that it is not silent later. */
const isLong = ROUNDS > 1;
const LIMIT_MS = 60_000;
const MODES = { swept: {}, rapid: { rapid: true }, live: { live: true } } as const;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startLiveFleet({
    env: { SCHEMA_POLL_SECONDS: "1", UPSTREAM_TIMEOUT_MS: "1000", WORKER_CONCURRENCY: "20" },
  });
}, 120_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

test.each(Array.from({ length: ROUNDS }, (_, round) => SEED + round))(
  "S2: the status names what is broken, or SQL equals the source (seed %i)",
  { timeout: 400_000 },
  async (seed) => {
    const scenes = Object.keys(MODES) as (keyof typeof MODES)[];
    await Promise.all(scenes.map((mode, index) => play(mode, new Random(seed * 10 + index))));
  },
);

async function play(mode: keyof typeof MODES, random: Random): Promise<void> {
  const { control } = fleet.sandbox;
  const sourceId = control.generate({ records: 30, seed: random.int(1, 1e6) });
  const { id } = await fleet.connect(sourceId, { turbo: true, ...MODES[mode] });
  const { tables } = control.dump(sourceId) as unknown as SourceDump;
  const breakage = randomBreakage(random, tables);
  const isBrokenFirst = random.int(1, 3) === 1 && !isInReplica(breakage.name);
  if (!isBrokenFirst) await untilWell(id, `${mode} base`);
  const undo = await breakage.begin(fleet, await getBase(fleet.ctx.db, id));
  const what = `${mode}: ${breakage.name}${isBrokenFirst ? " from the start" : ""}`;
  try {
    change(sourceId, random, tables);
    await until(async () => (await isNamed(id)) || (await isEqual(id)), {
      what: `${what}: the status names it, or SQL equals the source`,
      timeoutMs: LIMIT_MS,
    });
    await pagesAreTrue(id, what);
    if (isLong) await neverSilent(id, what);
  } finally {
    await undo();
  }
  if (isLong) {
    change(sourceId, random, tables);
    await untilWell(id, what);
  }
}

function isInReplica(name: string): boolean {
  return !name.includes(" for ");
}

/** Edits a record of a table, adds one, and adds a table or a field. */
function change(sourceId: string, random: Random, tables: SourceDump["tables"]): void {
  const { control } = fleet.sandbox;
  const text = { name: `Arrivals ${random.int(1, 1e6)}`, type: "singleLineText" };
  for (const table of tables) {
    if (random.int(1, 2) === 1) control.createRecords(sourceId, table.id, [{ fields: {} }]);
  }
  if (random.int(1, 2) === 1) control.addField(sourceId, random.pick(tables).id, text);
  const isTaken = (control.dump(sourceId) as unknown as SourceDump).tables.some(
    ({ name }) => name === "Arrivals",
  );
  if (!isTaken) control.addTable(sourceId, { name: "Arrivals", fields: [text] });
}

/** What pages may say only of a base that is current. */
const REASSURING = [
  /nothing (has )?changed/i,
  /every known change is in the database/,
  /the database matched Airtable/,
  /No missed changes/,
  /"badge state green"/,
];

/** S3. A page is read between two looks at the status that agree: its causes come and go. */
async function pagesAreTrue(id: string, what: string): Promise<void> {
  const ask = asker(consoleApp(fleet.ctx, authByHeader()));
  const look = async () => {
    const base = await getBase(fleet.ctx.db, id);
    return { base, status: statusOf(base, new Date()) };
  };
  await until(
    async () => {
      const { base, status } = await look();
      const account = { id: base.accountId, email: "owner@example.com", isOperator: false } as Account;
      const read = async (path: string) => (await ask(path, { account })).text;
      const pages = { overview: await read(`/bases/${id}`), freshness: await read(`/bases/${id}/freshness`) };
      const after = (await look()).status;
      if (after.headline !== status.headline || after.isCurrent !== status.isCurrent) return false;
      if (status.isCurrent) return true;
      const words = textOf(pages.overview);
      expect(words, what).toContain(status.word);
      if (status.word !== "First sync") expect(words, what).toContain(status.headline);
      for (const [page, text] of Object.entries(pages))
        for (const claim of REASSURING) expect(text, `${what}: ${page}`).not.toMatch(claim);
      // Each remedy leads somewhere: a page, or a form, whose address redirects to its page.
      if (status.remedy) expect(words, what).toContain(status.remedy.text);
      const main = /<main[\s\S]*<\/main>/.exec(pages.overview)![0];
      for (const [, path] of main.matchAll(/(?:href|action)="(\/bases\/[^"#]*)/g))
        expect([200, 303], `${what}: ${path}`).toContain((await ask(path!, { account })).status);
      return true;
    },
    { what: `${what}: the page is read while the status stays`, timeoutMs: LIMIT_MS, intervalMs: 200 },
  );
}

function textOf(html: string): string {
  const names: Record<string, string> = { quot: '"', "#39": "'", lt: "<", gt: ">", amp: "&" };
  return html
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/&(quot|#39|lt|gt|amp);/g, (_, name) => names[name]!)
    .replaceAll(/\s+/g, " ");
}

/** For more than a minute, the status is not green while SQL differs from the source for a minute. */
async function neverSilent(id: string, what: string): Promise<void> {
  const from = performance.now();
  let silentSince: number | undefined;
  await until(
    async () => {
      const isSilent = !(await isNamed(id)) && !(await isEqual(id));
      silentSince = isSilent ? (silentSince ?? performance.now()) : undefined;
      if (silentSince !== undefined && performance.now() - silentSince > LIMIT_MS)
        throw new Error(`${what}: green for a minute while SQL differs`);
      return performance.now() - from > LIMIT_MS + 15_000;
    },
    { what: "the time is over", timeoutMs: 120_000, intervalMs: 1000 },
  );
}

async function isNamed(id: string): Promise<boolean> {
  const { color, reason } = indicatorOf(await getBase(fleet.ctx.db, id), new Date());
  expect(reason).not.toBe("");
  return color !== "green";
}

async function isEqual(id: string): Promise<boolean> {
  const base = await getBase(fleet.ctx.db, id);
  if (!base.sync) return false;
  const dump = fleet.sandbox.control.dump(base.sourceBaseId) as unknown as SourceDump;
  // A table may change while it is read.
  const found = await compareToSource(await fleet.reader(base), dump).catch(() => null);
  return found?.differences.length === 0;
}

async function untilWell(id: string, what: string): Promise<Base> {
  return until(
    async () => {
      const base = await getBase(fleet.ctx.db, id);
      const { color, cause } = indicatorOf(base, new Date());
      return base.sync && (color === "green" || cause === "slow") && (await isEqual(id)) && base;
    },
    { what: `${what}: well again`, timeoutMs: 200_000 },
  );
}
