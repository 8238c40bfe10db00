/** Rapid mode that is stopped at the moment at which it begins. */
import { expect, test } from "vitest";
import { BasetideError } from "../../../core/errors";
import { rapidBase } from "../../../core/sync/modes/rapid";
import { testEngine } from "../../support/engine";
import { modifiedSince } from "../../support/fake-source";
import { teamRecord, teamsAndPeople } from "../../support/teams";

test("it ends if it is stopped while it reads the schema", async () => {
  const engine = await testEngine();
  const { source, cache } = engine;
  source.add(teamsAndPeople().teams, [teamRecord("recT1", "Red")]);
  await engine.sync();
  cache.sourceClock.record(Date.now());
  const stop = new AbortController();
  source.before = (call) => {
    if (call === "schema") stop.abort(new BasetideError("sync_stopped"));
  };
  const input = engine.input();
  const ended = rapidBase({
    ...input,
    schemaPollMs: 0,
    reader: { ...input.reader, stop: stop.signal },
    cadence: () => ({ cycleMs: 1000, sweepEveryMs: 60_000 }),
    modifiedSince,
    isOver: () => false,
    onRun: async () => {},
    onRead: async () => {},
  });
  await expect(ended).rejects.toMatchObject({ code: "sync_stopped" });
});
