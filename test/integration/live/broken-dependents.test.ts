/** A table whose rows cannot be read or written delays no change of the tables that it depends on, and no lease that ends. */
import postgres from "postgres";
import { expect, test, vi } from "vitest";
import { asAdmin, superuserUrl } from "../../support/admin";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { personRecord, teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 60_000 });

type Scene = Awaited<ReturnType<typeof liveTeams>>;

/** Breaks the table of people. Returns what repairs it. */
const FAULTS: Record<string, (scene: Scene) => Promise<() => Promise<unknown>>> = {
  "is locked": async ({ engine }) => {
    const holder = postgres(superuserUrl(engine.replica.ownerUrl), { max: 1, onnotice: () => {} });
    await holder`begin; lock table public.people in access exclusive mode`.simple();
    return () => holder.end({ timeout: 1 });
  },
  "belongs to another role": async ({ engine }) => {
    const admin = superuserUrl(engine.replica.ownerUrl);
    const give = (owner: string) =>
      asAdmin((sql) => sql.unsafe(`alter table public.people owner to "${owner}"`), admin);
    const [us] = await engine.replica.replica.sql<{ name: string }[]>`select current_user::text as name`;
    await give("pg_monitor");
    return () => give(us!.name);
  },
};

test.for(Object.keys(FAULTS))("a change arrives while the table of its dependents %s", async (fault) => {
  const scene = await liveTeams();
  const { engine, edit, equal, people } = scene;
  const repair = await FAULTS[fault]!(scene);
  for (const [name, id] of [
    ["Crimson", "recP2"],
    ["Scarlet", "recP1"],
  ] as const) {
    // Both sides of a link change, and the people show the team's name.
    for (const record of people.records.keys()) people.records.set(record, personRecord(record, record));
    people.records.set(id, personRecord(id, id, ["recT1"], [name]));
    edit.teams.put(teamRecord("recT1", name, [id]));
    await until(
      async () => ((await engine.rows("teams")) as { name: string }[]).some((team) => team.name === name),
      { what: `${name} is in SQL`, timeoutMs: 20_000 },
    );
  }
  await until(() => engine.cache.failing.has("tblP"), { what: "people are named", timeoutMs: 20_000 });
  expect(engine.cache.failing.ids).toEqual(["tblP"]);
  await repair();
  await until(() => equal().then(() => true), {
    what: "people are equal",
    timeoutMs: 40_000,
    retryErrors: true,
  });
  await until(() => engine.cache.failing.size === 0, { what: "no table fails", timeoutMs: 40_000 });
});

test("live mode ends although a table is not answered for", async () => {
  const { engine, edit, source, running } = await liveTeams();
  const hung = Promise.withResolvers<void>();
  source.before = (call) => (call === "ids tblT" ? hung.promise : undefined);
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => engine.cache.failing.has("tblT"), { what: "teams are named", timeoutMs: 20_000 });
  await running.over();
});
