/** What the status shows while an object of the customer's refuses a change of tables, in every mode. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Base, getBase, replicaTarget } from "../../../core/control/bases";
import { indicatorOf } from "../../../core/control/status";
import { asAdmin, superuserUrl } from "../../support/admin";
import { expectWell } from "../../support/base-states";
import type { Fleet } from "../../support/fleet";
import { hostedUrl } from "../../support/hosted-url";
import { startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";

const MODES = { swept: {}, rapid: { rapid: true }, live: { live: true } } as const;
const TIMEOUT_MS = 90_000;
/** Ten times this is longer than the shortest pause. */
const LONG_ATTEMPT_MS = 3200;
/** Times are stored from two clocks. */
const CLOCKS_MS = 500;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startLiveFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "1" },
  });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** Refuses all DDL of the service after a time, and counts the attempts. */
async function guard(base: Base, afterMs: number) {
  const { url } = await replicaTarget(fleet.ctx, base);
  const admin = superuserUrl(hostedUrl(url));
  await asAdmin(
    (sql) =>
      sql.unsafe(`create schema app; create sequence app.attempts;
        create function app.guard() returns event_trigger language plpgsql security definer as
        $$ begin perform nextval('app.attempts'); perform pg_sleep(${afterMs / 1000}); raise exception '% needs a ticket', tg_tag; end $$;
        create event trigger guard on ddl_command_start execute function app.guard()`),
    admin,
  );
  return {
    attempts: () =>
      asAdmin(async (sql) => Number((await sql`select last_value from app.attempts`)[0]!.last_value), admin),
    drop: () => asAdmin((sql) => sql`drop event trigger guard`.simple(), admin),
  };
}

async function scene([mode, change]: [keyof typeof MODES, keyof typeof CHANGES]) {
  const name = `${mode} base with ${change}`;
  const { control } = fleet.sandbox;
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Note", type: "singleLineText" },
  ];
  const sourceId = control.createBase({
    tables: ["People", "Places"].map((name) => ({ name, fields, records: [{ fields: { Name: "0" } }] })),
  });
  const [people] = control.dump(sourceId).tables;
  const { id } = await fleet.connect(sourceId, { turbo: true, ...MODES[mode] });
  const current = () => getBase(fleet.ctx.db, id);
  const base = await until(
    async () => {
      const base = await current();
      const isInMode = mode === "live" ? base.live?.readAt : base.sync?.kind === MODE_KINDS[mode];
      return base.sync && isInMode && base;
    },
    { what: `the ${name} is in sync`, timeoutMs: TIMEOUT_MS },
  );
  const reader = await fleet.reader(base);
  const makeChange = () => CHANGES[change](sourceId, people!.id);
  const isRebuilt = change === "a new field";
  const refusedAfterMs = isRebuilt && mode === "live" ? LONG_ATTEMPT_MS : 0;
  const guarded = await guard(base, refusedAfterMs);
  const pauseMs = isRebuilt ? Math.max(30_000, 10 * refusedAfterMs) + refusedAfterMs : null;
  return { name, base, current, reader, sourceId, people: people!, guarded, makeChange, pauseMs };
}

const MODE_KINDS = { swept: "first", rapid: "rapid", live: "live" } as const;

const CHANGES = {
  "a new field": (sourceId: string, people: string) =>
    fleet.sandbox.control.addField(sourceId, people, { name: "Added", type: "singleLineText" }),
  "a renamed field": (sourceId: string, people: string) =>
    fleet.sandbox.control.renameField(sourceId, people, "Note", "Remark"),
};
const SCENES = (["swept", "rapid", "live"] as const).flatMap((mode) =>
  (["a new field", "a renamed field"] as const).map((change): Parameters<typeof scene>[0] => [mode, change]),
);

/** The time between two attempts at a rebuild, as the status announces them. */
async function pausedMs(current: () => Promise<Base>): Promise<number> {
  const announced = async () => {
    const { problems } = await current();
    return problems.find(({ kind }) => kind === "outdated_table")?.nextAt?.getTime();
  };
  const what = { what: "the next attempt is announced", timeoutMs: TIMEOUT_MS };
  const first = await until(announced, what);
  const isLater = async () => {
    const next = await announced();
    return next !== undefined && next - first > CLOCKS_MS && next;
  };
  return (await until(isLater, what)) - first;
}

test("while a change is refused, the base is red all the time, and rows follow, also with another worker", {
  timeout: 4 * TIMEOUT_MS,
}, async () => {
  const { control } = fleet.sandbox;
  const scenes = await Promise.all(SCENES.map(scene));
  for (const { makeChange } of scenes) makeChange();
  const reds = await Promise.all(
    scenes.map(({ name, current }) =>
      until(async () => (await current()).error, {
        what: `the ${name} reports the refusal`,
        timeoutMs: TIMEOUT_MS,
      }),
    ),
  );
  for (const turn of ["1", "2"]) {
    await Promise.all(
      scenes.map(async ({ name, current, reader, sourceId, people, guarded, pauseMs }) => {
        const from = await guarded.attempts();
        if (pauseMs !== null && turn === "1")
          expect(await pausedMs(current), name).toBeGreaterThanOrEqual(pauseMs - CLOCKS_MS);
        const isTried = async () => (await guarded.attempts()) > from;
        await until(isTried, {
          what: `the ${name} tries again`,
          timeoutMs: TIMEOUT_MS,
          intervalMs: 200,
        });
        control.updateRecords(sourceId, people.id, [{ id: people.records[0]!.id, fields: { Name: turn } }]);
        const isRead = async () => (await reader`select from people where name = ${turn}`).length === 1;
        await until(isRead, { what: `the ${name} follows`, timeoutMs: TIMEOUT_MS });
        expect(indicatorOf(await current(), new Date()), name).toMatchObject({
          color: "red",
          cause: "error",
        });
      }),
    );
    if (turn === "1") {
      await fleet.workers.at(-1)!.stop();
      await fleet.addWorker();
    }
  }
  // A completed sync in between would have ended the error, and begun another.
  for (const [index, { name, current }] of scenes.entries()) {
    const { error } = await current();
    expect(error, name).toMatchObject({ code: "replica_refused", since: reds[index]!.since });
  }
  await Promise.all(
    scenes.map(async ({ name, current, guarded }) => {
      await guarded.drop();
      const isOver = async () => (await current()).error === null && (await current()).problems.length === 0;
      await until(isOver, { what: `the ${name} is well again`, timeoutMs: TIMEOUT_MS });
      expectWell(await current());
    }),
  );
});
