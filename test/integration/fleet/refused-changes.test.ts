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

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startLiveFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "1" },
  });
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** Refuses all DDL of the service, and counts the attempts. */
async function guard(base: Base) {
  const { url } = await replicaTarget(fleet.ctx, base);
  const admin = superuserUrl(hostedUrl(url));
  await asAdmin(
    (sql) =>
      sql.unsafe(`create schema app; create sequence app.attempts;
        create function app.guard() returns event_trigger language plpgsql security definer as
        $$ begin perform nextval('app.attempts'); raise exception '% needs a ticket', tg_tag; end $$;
        create event trigger guard on ddl_command_start execute function app.guard()`),
    admin,
  );
  return {
    attempts: () =>
      asAdmin(async (sql) => Number((await sql`select last_value from app.attempts`)[0]!.last_value), admin),
    drop: () => asAdmin((sql) => sql`drop event trigger guard`.simple(), admin),
  };
}

async function scene(mode: keyof typeof MODES) {
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
    { what: `the ${mode} base is in sync`, timeoutMs: TIMEOUT_MS },
  );
  const reader = await fleet.reader(base);
  return { mode, base, current, reader, sourceId, people: people!, guarded: await guard(base) };
}

const MODE_KINDS = { swept: "first", rapid: "rapid", live: "live" } as const;

/** With the number of attempts at it that each worker makes: a rename is tried every 30 s. */
const CHANGES: [string, number, (sourceId: string, people: string) => void][] = [
  [
    "a new field",
    4,
    (sourceId, people) =>
      fleet.sandbox.control.addField(sourceId, people, { name: "Added", type: "singleLineText" }),
  ],
  [
    "a renamed field",
    1,
    (sourceId, people) => fleet.sandbox.control.renameField(sourceId, people, "Note", "Remark"),
  ],
];

test.each(CHANGES)(
  "while %s is refused, the base is red all the time, and rows follow, also with another worker",
  { timeout: 4 * TIMEOUT_MS },
  async (_, attempts, change) => {
    const { control } = fleet.sandbox;
    const scenes = await Promise.all((["swept", "rapid", "live"] as const).map(scene));
    for (const { sourceId, people } of scenes) change(sourceId, people.id);
    const reds = await Promise.all(
      scenes.map(({ mode, current }) =>
        until(async () => (await current()).error, {
          what: `the ${mode} base reports the refusal`,
          timeoutMs: TIMEOUT_MS,
        }),
      ),
    );
    for (const turn of ["1", "2"]) {
      await Promise.all(
        scenes.map(async ({ mode, current, reader, sourceId, people, guarded }) => {
          const from = await guarded.attempts();
          const isTried = async () => (await guarded.attempts()) - from >= attempts;
          await until(isTried, {
            what: `the ${mode} base tries again`,
            timeoutMs: TIMEOUT_MS,
            intervalMs: 200,
          });
          control.updateRecords(sourceId, people.id, [{ id: people.records[0]!.id, fields: { Name: turn } }]);
          const isRead = async () => (await reader`select from people where name = ${turn}`).length === 1;
          await until(isRead, { what: `the ${mode} base follows`, timeoutMs: TIMEOUT_MS });
          expect(indicatorOf(await current(), new Date()), mode).toMatchObject({
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
    for (const [index, { mode, current }] of scenes.entries()) {
      const { error } = await current();
      expect(error, mode).toMatchObject({ code: "replica_refused", since: reds[index]!.since });
    }
    await Promise.all(
      scenes.map(async ({ mode, current, guarded }) => {
        await guarded.drop();
        const isOver = async () =>
          (await current()).error === null && (await current()).problems.length === 0;
        await until(isOver, { what: `the ${mode} base is well again`, timeoutMs: TIMEOUT_MS });
        expectWell(await current());
      }),
    );
  },
);
