/** A base in live mode for tests: teams, their people, and editors that add their edits to the feed. */
import { expect } from "vitest";
import { editor } from "./fake-feed";
import { liveEngine } from "./live-engine";
import { until } from "./poll";
import { personRecord, rowsOf, teamRecord, teamsAndPeople } from "./teams";

/** Creates a base in live mode: two teams, two people, and any number of additional teams. */
export async function liveTeams(
  options: { teams?: number; hasEarlyReads?: boolean; settings?: { linkedRecordsAsText: boolean } } = {},
) {
  const engine = await liveEngine({ emptySpellMs: 300, hasEarlyReads: options.hasEarlyReads ?? false });
  const { source, webhook } = engine;
  const { teams, people } = teamsAndPeople();
  const more = Array.from({ length: options.teams ?? 0 }, (_, index) =>
    teamRecord(`recM${String(index).padStart(5, "0")}`, `More ${index}`),
  );
  const all = {
    teams: source.add(teams, [teamRecord("recT1", "Red", ["recP1"]), teamRecord("recT2", "Blue"), ...more]),
    people: source.add(people, [
      personRecord("recP1", "Ann", ["recT1"], ["Red"]),
      personRecord("recP2", "Bob"),
    ]),
  };
  const settings = options.settings ?? {};
  expect((await engine.sync({ settings })).error).toBeUndefined();
  source.calls.length = 0;
  const running = engine.start({ settings, schemaPollMs: 60_000 });
  await until(() => webhook.reads > 0, { what: "the feed is read" });
  const edit = {
    teams: editor(webhook, { source, table: all.teams }),
    people: editor(webhook, { source, table: all.people }),
  };
  const equal = async () => {
    expect(await engine.rows("teams")).toEqual(rowsOf.teams(all.teams.records.values()));
    expect(await engine.rows("people")).toEqual(rowsOf.people(all.people.records.values()));
  };
  return { engine, running, edit, equal, ...all, ...engine };
}
