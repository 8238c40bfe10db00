/**
 * An edit in the table that was edited before is read while the feed is asked which record it is: one answer instead of two. The
 * image counts only where the feed confirms it.
 */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { personRecord, teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 30_000 });

/** A base in which teams were edited twice in a row. */
async function edited() {
  const scene = await liveTeams({ hasEarlyReads: true });
  for (const name of ["Ruby", "Crimson"]) {
    scene.edit.teams.put(teamRecord("recT1", name, ["recP1"]));
    await scene.engine.settled();
  }
  scene.source.calls.length = 0;
  // The feed answers when the records have been asked for, as over a network.
  const isAsked = () => scene.source.calls.some((call) => call.startsWith("look"));
  scene.webhook.before = async () => {
    await until(isAsked, { what: "records are asked for" });
  };
  return scene;
}

test("an edit in the table that was edited before needs one answer after its notification", async () => {
  const { engine, edit, equal, source } = await edited();
  edit.teams.put(teamRecord("recT2", "Navy"));
  await engine.settled();
  await equal();
  expect(source.calls).toEqual(["look tblT 0"]);
});

test("what depends on an edit that was read early is read after it", async () => {
  const { engine, edit, equal, source, people } = await edited();
  edit.teams.put(teamRecord("recT1", "Scarlet", ["recP1"]));
  people.records.set("recP1", personRecord("recP1", "Ann", ["recT1"], ["Scarlet"]));
  await engine.settled();
  await equal();
  expect(source.calls).toEqual(["look tblT 0", "ids tblP"]);
});

test("a record is read by id if the feed names it twice, or tells another cell than was read", async () => {
  const { engine, edit, equal, source, webhook, teams } = await edited();
  const held = Promise.withResolvers<void>();
  webhook.before = () => held.promise;
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => source.calls.includes("look tblT 0"), { what: "records are asked for" });
  edit.teams.put(teamRecord("recT2", "Blue"));
  edit.teams.put(teamRecord("recT2", "Navy"));
  held.resolve();
  await engine.settled();
  await equal();
  expect(source.calls.slice(0, 2)).toEqual(["look tblT 0", "ids tblT"]);

  source.calls.length = 0;
  const later = Promise.withResolvers<void>();
  webhook.before = () => later.promise;
  webhook.notifier.notify();
  await until(() => source.calls.includes("look tblT 0"), { what: "records are asked for again" });
  edit.teams.put(teamRecord("recT2", "Azure"));
  later.resolve();
  await engine.settled();
  await equal();
  expect(source.calls).toContain("ids tblT");
  expect(teams.records.get("recT2")!.fields.fldTName).toBe("Azure");
});

test("an early read that takes longer than the feed and a read by id is given up, and not made again", async () => {
  const { engine, edit, equal, source } = await edited();
  const never = Promise.withResolvers<void>();
  source.before = (call) => (call.startsWith("look") ? never.promise : undefined);
  for (const name of ["Navy", "Azure"]) {
    edit.teams.put(teamRecord("recT2", name));
    await engine.settled();
    await equal();
  }
  expect(source.calls).toEqual(["look tblT 0", "ids tblT", "ids tblT"]);
  never.resolve();
});

test("an early read that fails changes nothing", async () => {
  const { engine, edit, equal, source } = await edited();
  source.before = (call) => {
    if (call.startsWith("look")) throw new Error("broken off");
  };
  edit.teams.put(teamRecord("recT2", "Navy"));
  await engine.settled();
  await equal();
  expect(source.calls).toEqual(["look tblT 0", "ids tblT"]);
});

test("no early read is made that has no permit when the feed has been read", async () => {
  const { engine, edit, equal, source, webhook } = await edited();
  webhook.before = () => {};
  edit.teams.put(teamRecord("recT2", "Navy"));
  await engine.settled();
  await equal();
  expect(source.calls).toEqual(["ids tblT"]);
});

test("nothing is read early while edits take turns between tables", async () => {
  const { engine, edit, equal, source, webhook } = await edited();
  // Long enough for a request.
  webhook.before = () => Bun.sleep(50);
  edit.people.put(personRecord("recP2", "Bobby"));
  await engine.settled();
  source.calls.length = 0;
  edit.teams.put(teamRecord("recT2", "Azure"));
  await engine.settled();
  edit.people.put(personRecord("recP2", "Robert"));
  await engine.settled();
  await equal();
  expect(source.calls).toEqual(["ids tblT", "ids tblP"]);
});

interface Edit {
  row: 1 | 2;
  name: string;
  /** The feed tells of it when the next request is made, instead of at once. */
  isLate: boolean;
}
const edits: fc.Arbitrary<Edit[]> = fc.array(
  fc.record({
    row: fc.constantFrom(1 as const, 2 as const),
    name: fc.constantFrom("Red", "Blue", "Green"),
    isLate: fc.boolean(),
  }),
  { maxLength: 2 },
);
/** What is edited before a notification, before the early read is answered, and before the feed is. */
const round = fc.record({ first: edits, look: edits, feed: edits, isLookFirst: fc.boolean() });

test("whatever is edited, and however late the feed tells of it, SQL has the latest cells", async () => {
  const scene = await edited();
  const { engine, edit, equal, source, webhook, teams } = scene;
  let late: (() => void)[] = [];
  const make = (all: Edit[]) => {
    for (const tell of late.splice(0)) tell();
    for (const { row, name, isLate } of all) {
      const id = `recT${row}`;
      const record = {
        ...teams.records.get(id)!,
        fields: { ...teams.records.get(id)!.fields, fldTName: name },
      };
      if (teams.records.get(id)!.fields.fldTName === name) continue;
      const current = { cellValuesByFieldId: { fldTName: name } };
      const tell = () => edit.teams.tell({ changedRecordsById: { [id]: { current } } });
      edit.teams.silently(record);
      teams.modifiedMs.set(id, Date.now());
      if (isLate) late.push(tell);
      else tell();
    }
  };
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 4 }), async (rounds) => {
      for (const { first, isLookFirst, ...during } of rounds) {
        // What is not made during a request is made after it.
        const [look, feed] = [[...during.look], [...during.feed]];
        const looked = Promise.withResolvers<void>();
        const read = Promise.withResolvers<void>();
        const isRead = webhook.reads;
        source.before = async (call) => {
          if (!call.startsWith("look")) return;
          if (!isLookFirst) await read.promise;
          make(look.splice(0));
          looked.resolve();
        };
        webhook.before = async () => {
          // An early read has as long again, and there is none at first.
          await Promise.race([isLookFirst ? looked.promise : undefined, Bun.sleep(20)].filter(Boolean));
          make(feed.splice(0));
          read.resolve();
        };
        make(first);
        webhook.notifier.notify();
        await until(() => webhook.reads > isRead, { what: "the feed is read" });
        make([...look.splice(0), ...feed.splice(0)]);
      }
      source.before = () => {};
      webhook.before = () => {};
      make([]);
      late = [];
      await engine.settled();
      await equal();
    }),
    { numRuns: 60 },
  );
});
