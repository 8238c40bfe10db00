/** A sweep that compares every record takes a turn of its server; one that knows its records takes none. */
import { expect, onTestFinished, test } from "vitest";
import { syncBase } from "../../../core/sync/engine";
import { inComparisonTurn } from "../../../core/sync/engine/comparison-turns";
import { BaseCache } from "../../../core/sync/state";
import { testEngine } from "../../support/engine";
import { sourceRecord, sourceTable } from "../../support/source-records";

const BUSY = "comparing:5432";

test("after a restart, a sweep waits for its turn, and ends at once when it is stopped; a sweep that compares nothing does not wait", async () => {
  const engine = await testEngine();
  const people = sourceTable("tblPeople", "People", { Name: "text" });
  const { records } = engine.source.add(people, [sourceRecord("rec1", { fld0: "Ada" })]);
  await engine.sync();
  records.set("rec1", sourceRecord("rec1", { fld0: "Grace" }));

  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const others = Promise.all(
    Array.from({ length: 100 }, () =>
      inComparisonTurn({ server: BUSY }, new AbortController().signal, () => over),
    ),
  );
  onTestFinished(async () => {
    end();
    await others;
  });
  const input = { ...engine.input(), next: undefined };
  const replica = { ...input.replica, server: BUSY };
  const restarted = () => ({ ...input, replica, cache: new BaseCache(input.epoch) });

  const stop = new AbortController();
  const stopped = syncBase({ ...restarted(), reader: { ...input.reader, stop: stop.signal } });
  let isOver = false;
  const waiting = syncBase(restarted()).then((report) => {
    isOver = true;
    return report;
  });
  // These began later, and there are more of them.
  for (let time = 0; time < 5; time++) expect((await syncBase({ ...input, replica })).error).toBeUndefined();
  expect(await engine.rows()).toMatchObject([{ name: "Grace" }]);
  stop.abort();
  await expect(stopped).rejects.toMatchObject({ code: "sync_stopped" });
  expect(isOver).toBe(false);
  end();
  expect((await waiting).error).toBeUndefined();
});
