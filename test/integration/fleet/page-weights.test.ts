/** What every page of the console loads when it is opened for the first time, and that every page can be opened. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { pageVisits } from "../../support/console-pages";
import { type ConsoleScene, consoleScene } from "../../support/console-scene";
import { type Fleet, startFleet } from "../../support/fleet";
import {
  EDITOR_WEIGHT,
  FONT_WEIGHT,
  PAGE_WEIGHT,
  type PageWeight,
  pageScales,
} from "../../support/page-weight";

const BASES = 120;
/** `bun run bench console` has 200, which take long to sync on a busy machine. */
const TABLES = 10;

let fleet: Fleet;
let scene: ConsoleScene;
let weigh: ReturnType<typeof pageScales>;

beforeAll(async () => {
  fleet = await startFleet();
  scene = await consoleScene(fleet, { bases: BASES, tables: TABLES, rows: 120 });
  weigh = pageScales(scene.origin);
}, 300_000);
afterAll(async () => {
  await scene?.stop();
  // Those without a database cannot be deleted as bases are.
  if (fleet) await fleet.ctx.db`delete from bases where id like 'bas_00000000%'`;
  if (fleet) await fleet.ctx.db`delete from databases where id like 'dat_00000000%'`;
  await fleet?.[Symbol.asyncDispose]();
}, 120_000);

test("a first visit to any page loads 60 kB at most, and only the SQL editor loads its script", async () => {
  const weights = new Map<string, PageWeight>();
  for (const { path, isVisitor, isFragment } of pageVisits(scene.ids)) {
    const headers = {
      ...(isVisitor ? {} : { cookie: scene.cookie }),
      ...(isFragment ? { "hx-request": "true" } : {}),
    };
    weights.set(path, await weigh(path, headers));
  }
  const found = [...weights].map(([path, { status, bytes, editorBytes, fontBytes }]) => ({
    path,
    status,
    bytes,
    editorBytes,
    fontBytes,
  }));
  expect(found.filter(({ status }) => status !== 200)).toEqual([]);
  expect(found.filter(({ bytes }) => bytes > PAGE_WEIGHT)).toEqual([]);
  expect(found.filter(({ fontBytes }) => fontBytes > FONT_WEIGHT)).toEqual([]);
  expect(found.some(({ fontBytes }) => fontBytes > 0)).toBe(true);
  const editors = found.filter(({ editorBytes }) => editorBytes > 0);
  expect(editors.map(({ path }) => path)).toEqual([`/bases/${scene.base.id}/sql`]);
  expect(editors[0]!.editorBytes).toBeLessThan(EDITOR_WEIGHT);
}, 180_000);

/** The bases of all pages from this one on, in their order. */
async function listed(first: string): Promise<string[]> {
  const ids: string[] = [];
  for (let path: string | undefined = first; path; ) {
    const { text, status } = await weigh(path, { cookie: scene.cookie });
    expect(status).toBe(200);
    ids.push(...[...text.matchAll(/<tr id="(bas_\w+)"/g)].map(([, id]) => id!));
    path = /rel="next"[^>]*href="([^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  }
  return ids;
}

test("the list of many bases has pages, which show each base once", async () => {
  for (const path of ["/bases?sort=records", "/bases"]) {
    const ids = await listed(path);
    expect(ids).toHaveLength(BASES);
    expect(new Set(ids).size).toBe(BASES);
  }
  // Found by a filter that excludes none, the bases have the same order as without one.
  expect(await listed("/bases")).toEqual(await listed("/bases?q=a"));
  const beyond = await weigh("/bases?page=99", { cookie: scene.cookie });
  expect(beyond.text).toContain(`101–${BASES} of ${BASES}`);
});
