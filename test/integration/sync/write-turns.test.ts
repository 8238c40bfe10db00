/** Every page that a sync writes takes a turn of its server. */
import { expect, onTestFinished, test } from "vitest";
import { syncBase } from "../../../core/sync/engine";
import { inWriteTurn } from "../../../core/sync/engine/write-turns";
import { type Engine, testEngine } from "../../support/engine";
import { sourceRecord, sourceTable } from "../../support/source-records";

const BUSY = "busy:5432";

/** Takes all turns of a server, for longer than this test lasts. @returns what ends that */
function takeTurns(server: string): () => Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const all = Promise.all(Array.from({ length: 640 }, () => inWriteTurn({ server }, () => promise)));
  return () => {
    resolve();
    return all;
  };
}

/** Syncs as if the replica were on that server. */
function sync(engine: Engine, server: string) {
  const input = engine.input();
  return syncBase({ ...input, replica: { ...input.replica, server } });
}

test.each(["first sync", "sweep"])("a %s waits for a turn of its own server only", async (kind) => {
  const engines = await Promise.all([testEngine(), testEngine()]);
  const [waiting, free] = engines;
  for (const { source, sync } of engines) {
    const people = sourceTable("tblPeople", "People", { Name: "text" });
    const { records } = source.add(people, [sourceRecord("rec1", { fld0: "Ada" })]);
    if (kind === "first sync") continue;
    await sync();
    records.set("rec1", sourceRecord("rec1", { fld0: "Grace" }));
  }
  const release = takeTurns(BUSY);
  onTestFinished(async () => void (await release()));
  let isOver = false;
  const syncing = sync(waiting, BUSY).then(() => {
    isOver = true;
  });
  // The one that waits began first, and has less to do.
  for (let time = 0; time < 3; time++) expect((await sync(free, "free:5432")).error).toBeUndefined();
  expect(isOver).toBe(false);
  await release();
  await syncing;
  const name = kind === "sweep" ? "Grace" : "Ada";
  for (const { rows } of engines) expect(await rows()).toMatchObject([{ name }]);
});

test("pages of tables that fail share one turn of their base, and leave the other to its other tables", async () => {
  const replica = { server: "failing:5432" };
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const hanging = ["first", "second", "third"].map((name) =>
    inWriteTurn(
      replica,
      () => {
        begun.push(name);
        return over;
      },
      true,
    ),
  );
  expect(await inWriteTurn(replica, async () => "written")).toBe("written");
  expect(begun).toEqual(["first"]);
  end();
  await Promise.all(hanging);
  expect(begun).toEqual(["first", "second", "third"]);
});
