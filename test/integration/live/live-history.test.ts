/**
 * Live mode with any history: users edit, apps write through the proxy, records are linked and looked up, the feed
 * reports late, in pieces and twice, and workers die, at any moment between requests.
 *
 * The feed reports every edit and no computed cell; no sweep helps.
 */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { takeReadVersion } from "../../../core/replica";
import type { SourceRecord } from "../../../core/source";
import { applyWrite } from "../../support/apply-write";
import type { Payload, TablePayload } from "../../support/fake-feed";
import type { FakeTable } from "../../support/fake-source";
import { type LiveEngine, liveEngine, type Running } from "../../support/live-engine";
import { until } from "../../support/poll";
import { personRecord, rowsOf, teamRecord, teamsAndPeople } from "../../support/teams";

vi.setConfig({ testTimeout: 240_000 });

const RUNS = 20;

type Kind =
  | "create team"
  | "rename team"
  | "delete team"
  | "create person"
  | "join"
  | "leave"
  | "delete person";
interface Event {
  kind: Kind;
  row: number;
  other: number;
  /** A write through the proxy, whose answer is applied after this many more requests; otherwise a user's edit. */
  late: number | null;
  /** After how many more requests the feed reports it; and is it reported twice? */
  toldAfter: number;
  isToldTwice: boolean;
}

const event: fc.Arbitrary<Event> = fc.record({
  kind: fc.constantFrom<Kind>(
    "create team",
    "rename team",
    "rename team",
    "delete team",
    "create person",
    "join",
    "join",
    "leave",
    "delete person",
  ),
  row: fc.nat(20),
  other: fc.nat(20),
  late: fc.option(fc.nat(3), { freq: 3 }),
  toldAfter: fc.nat(3),
  isToldTwice: fc.boolean(),
});
/** What happens before each of the first requests; "die": the worker is killed, and another one continues. */
const history = fc.array(
  fc.record({
    events: fc.array(event, { maxLength: 2 }),
    dies: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  }),
  { minLength: 5, maxLength: 30 },
);

test("I1-I3, I7: after any history, everything that the feed reported is in the replica once it is idle, as at the source", {
  tags: "once",
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      history,
      fc.integer({ min: 1, max: 50 }),
      fc.boolean(),
      async (happens, atOnce, hasEarlyReads) => {
        const world = await startWorld(atOnce, hasEarlyReads);
        let running: Running = world.engine.start();
        // Each read of the feed is one step.
        for (const { events, dies } of happens) {
          for (const one of events) world.coming.push(one);
          const reads = world.engine.webhook.reads;
          world.engine.webhook.notifier.notify();
          await until(() => world.engine.webhook.reads > reads, { what: "the feed is read" });
          if (!dies) continue;
          await running.stop();
          await world.engine.restart();
          running = world.engine.start();
        }
        const isOver = () => {
          world.engine.webhook.notifier.notify();
          return world.coming.length === 0;
        };
        await until(isOver, { what: "everything has happened" });
        await world.quiet();
        await world.engine.settled();
        expect(await world.engine.rows("teams")).toEqual(rowsOf.teams(world.teams.records.values()));
        expect(await world.engine.rows("people")).toEqual(rowsOf.people(world.people.records.values()));
        await running.stop();
        await world.engine[Symbol.asyncDispose]();
      },
    ),
    { numRuns: RUNS },
  );
});

interface World {
  engine: LiveEngine;
  teams: FakeTable;
  people: FakeTable;
  /** What happens with the next requests. */
  coming: Event[];
  /** Everything in transit has arrived. */
  quiet(): Promise<void>;
}

async function startWorld(atOnce: number, hasEarlyReads: boolean): Promise<World> {
  const engine = await liveEngine({ absentMs: [20, 50], hasEarlyReads });
  const { source, webhook } = engine;
  webhook.atOnce = atOnce;
  const { teams, people } = teamsAndPeople();
  const tables = {
    teams: source.add(
      teams,
      ["recT1", "recT2", "recT3"].map((id) => teamRecord(id, `first ${id}`)),
    ),
    people: source.add(
      people,
      ["recP1", "recP2", "recP3"].map((id) => personRecord(id, id)),
    ),
  };
  await engine.sync();
  const coming: Event[] = [];
  const late: { due: number; apply: () => Promise<void> | void }[] = [];
  let requests = 0;
  let made = 10;
  let stepping: Promise<void> = Promise.resolve();
  const happen = async () => {
    const one = coming.shift();
    if (one) {
      const done = await carryOut(engine, tables, one, ++made);
      if (done) {
        late.push({
          due: requests + one.toldAfter,
          apply: () => tell(webhook, done.payload, one.isToldTwice),
        });
        if (done.apply) late.push({ due: requests + one.late!, apply: done.apply });
      }
    }
    for (const waiting of late.splice(0)) {
      if (waiting.due <= requests) await waiting.apply();
      else late.push(waiting);
    }
  };
  const step = async () => {
    const number = ++requests;
    // One after the other; a failure is passed to all that wait for the end.
    stepping = stepping.then(happen);
    await stepping;
    // Answers arrive out of order.
    await Bun.sleep(number % 3);
  };
  source.before = step;
  webhook.before = step;
  return {
    engine,
    ...tables,
    coming,
    async quiet() {
      source.before = () => {};
      webhook.before = () => {};
      await stepping;
      for (const waiting of late.splice(0)) await waiting.apply();
    },
  };
}

function tell(webhook: LiveEngine["webhook"], payload: Payload, isTwice: boolean): void {
  for (let times = isTwice ? 2 : 1; times > 0; times--) webhook.tell(structuredClone(payload));
}

interface Tables {
  teams: FakeTable;
  people: FakeTable;
}

/** A record that was written, and how the feed reports it. */
interface Written {
  table: FakeTable;
  id: string;
  told: TablePayload;
}

/** Changes the source; also what the feed reports, and for a proxied write how its answer is applied. */
async function carryOut(
  { replica }: LiveEngine,
  tables: Tables,
  event: Event,
  number: number,
): Promise<{ payload: Payload; apply?: () => Promise<void> } | undefined> {
  const readVersion = event.late === null ? 0 : await takeReadVersion(replica.replica);
  const written = change(tables, event, number);
  if (!written) return undefined;
  compute(tables);
  const { table, id, told } = written;
  const image = structuredClone(table.records.get(id) ?? null);
  return {
    payload: { changedTablesById: { [table.table.id]: told } },
    ...(event.late !== null && { apply: () => applyWrite(replica.replica, table, id, readVersion, image) }),
  };
}

function change({ teams, people }: Tables, { kind, row, other }: Event, number: number): Written | undefined {
  const isOfBoth = kind === "join" || kind === "leave";
  const team = pick(teams, isOfBoth ? other : row);
  const person = pick(people, row);
  if (kind === "create team") return create(teams, teamRecord(`recT${number}`, `made ${number}`));
  if (kind === "create person") return create(people, personRecord(`recP${number}`, `made ${number}`));
  if (kind === "rename team" && team) {
    // A name may come back.
    teams.records.set(team.id, { ...team, fields: { ...team.fields, fldTName: `name ${number % 3}` } });
    return changed(teams, team.id, "fldTName");
  }
  if (kind === "delete team" && team) {
    for (const id of links(team, "fldTPeople")) unlink(people, id, "fldPTeams", team.id);
    return destroy(teams, team.id);
  }
  if (kind === "delete person" && person) {
    for (const id of links(person, "fldPTeams")) unlink(teams, id, "fldTPeople", person.id);
    return destroy(people, person.id);
  }
  if (!isOfBoth || !team || !person) return undefined;
  unlink(people, person.id, "fldPTeams", team.id);
  unlink(teams, team.id, "fldTPeople", person.id);
  if (kind === "join") {
    set(people, person.id, "fldPTeams", [...links(people.records.get(person.id)!, "fldPTeams"), team.id]);
    set(teams, team.id, "fldTPeople", [...links(teams.records.get(team.id)!, "fldTPeople"), person.id]);
  }
  // One side is reported; the other one is known from the link.
  return number % 2 === 0 ? changed(people, person.id, "fldPTeams") : changed(teams, team.id, "fldTPeople");
}

function pick({ records }: FakeTable, at: number): SourceRecord | undefined {
  return [...records.values()][at % Math.max(1, records.size)];
}

function create(table: FakeTable, record: SourceRecord): Written {
  table.records.set(record.id, record);
  return { table, id: record.id, told: { createdRecordsById: { [record.id]: {} } } };
}

function changed(table: FakeTable, id: string, fieldId: string): Written {
  table.modifiedMs.set(id, Date.now());
  const { fields } = table.records.get(id)!;
  const current = { cellValuesByFieldId: { [fieldId]: structuredClone(fields[fieldId] ?? null) } };
  return { table, id, told: { changedRecordsById: { [id]: { current } } } };
}

function destroy(table: FakeTable, id: string): Written {
  table.records.delete(id);
  return { table, id, told: { destroyedRecordIds: [id] } };
}

function links(record: SourceRecord, fieldId: string): string[] {
  return (record.fields[fieldId] as string[] | undefined) ?? [];
}

function unlink(table: FakeTable, id: string, fieldId: string, gone: string): void {
  const left = links(table.records.get(id)!, fieldId).filter((one) => one !== gone);
  set(table, id, fieldId, left);
}

function set({ records }: FakeTable, id: string, fieldId: string, ids: string[]): void {
  const { fields, ...record } = records.get(id)!;
  const { [fieldId]: _, ...others } = fields;
  records.set(id, { ...record, fields: ids.length > 0 ? { ...others, [fieldId]: ids } : others });
}

/** The lookups, as a source computes them. */
function compute({ teams, people }: Tables): void {
  for (const [id, { fields }] of people.records) {
    const names = ((fields.fldPTeams as string[]) ?? []).map(
      (one) => teams.records.get(one)!.fields.fldTName as string,
    );
    set(people, id, "fldPNames", names);
  }
}
