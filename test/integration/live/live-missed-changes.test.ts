/**
 * Missed changes in live mode: what the feed does not report and only the reconciling sweep finds is counted as missed,
 * record by record; and nothing else is.
 */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { SourceRecord } from "../../../core/source";
import { liveBase } from "../../../core/sync/modes/live";
import { editor } from "../../support/fake-feed";
import { type LiveEngine, liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { personRecord, rowsOf, teamRecord, teamsAndPeople } from "../../support/teams";

vi.setConfig({ testTimeout: 120_000 });

const RUNS = 12;
const TEAMS = 12;
const PEOPLE = 12;
const DAY_MS = 86_400_000;
/** A report this old is unrelated to what a sweep finds now. */
const LONG_MS = 120_000;
/** A suspicion is certain when the feed has been read this much later. */
const CERTAIN_MS = 21_000;

/** What happens to a team, or to a person in the team of the same number. */
type Fate =
  | "nothing"
  /** The feed reports it, at once or after the sweep has found it. */
  | "told"
  | "told late"
  /** Reported shortly before, and read again too early. */
  | "told before"
  /** The webhook is silent. */
  | "silent"
  | "silently gone"
  | "silently made"
  /** A computed cell that depends on the team: the feed reports only the team. */
  | "follows team"
  /** One that depends on the time: no report leads to it. */
  | "by itself";

const fates = (...all: Fate[]) => fc.constantFrom<Fate>("nothing", ...all);
const teamFates = fc.array(
  fates("told", "told late", "told before", "silent", "silently gone", "silently made"),
  {
    minLength: TEAMS,
    maxLength: TEAMS,
  },
);
const peopleFates = fc.array(
  fates("told", "told late", "told before", "silent", "follows team", "by itself"),
  {
    minLength: PEOPLE,
    maxLength: PEOPLE,
  },
);

/** Which of these only the sweep finds. */
const MISSED: ReadonlySet<Fate> = new Set<Fate>(["silent", "silently gone", "silently made", "by itself"]);

const teamId = (index: number) => `recT${String(index).padStart(3, "0")}`;
const personId = (index: number) => `recP${String(index).padStart(3, "0")}`;

test("a change that a sweep finds counts as missed if, and only if, the feed reported nothing that leads to it", {
  tags: "once",
}, async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    await fc.assert(fc.asyncProperty(teamFates, peopleFates, countsThose), {
      numRuns: RUNS,
      endOnFailure: true,
    });
  } finally {
    vi.useRealTimers();
  }
});

test("rows that a comparison found different have drifted if the feed, read later, reports nothing that leads to them", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    await using engine = await liveEngine();
    const { teams } = base(engine);
    expect((await engine.sync()).error).toBeUndefined();
    const stop = new AbortController();
    const missed: unknown[] = [];
    let isCompared = false;
    const running = liveBase({
      ...engine.liveInput(stop.signal, { schemaPollMs: DAY_MS }),
      onMissed: (...found) => missed.push(found),
      async compare({ onDifference }) {
        if (!isCompared) onDifference(teams.table.table.id, [teamId(0), teamId(1)]);
        isCompared = true;
      },
    }).catch(() => {});
    engine.cadence.freshnessMs = 0;
    await until(() => isCompared, { what: "SQL is compared" });
    teams.edit.put(teamRecord(teamId(0), "told", [personId(0)]));
    await settled(engine);
    expect(engine.webhook.drifts).toBe(0);
    vi.advanceTimersByTime(CERTAIN_MS);
    engine.webhook.notifier.notify();
    await until(() => engine.webhook.drifts > 0, { what: "drift is recorded" });
    expect(missed).toEqual([["comparison", 1]]);
    stop.abort();
    await running;
  } finally {
    vi.useRealTimers();
  }
});

async function countsThose(ofTeams: Fate[], ofPeople: Fate[]): Promise<void> {
  await using engine = await liveEngine();
  const { teams, people } = base(engine);
  expect((await engine.sync()).error).toBeUndefined();
  const running = engine.start({ schemaPollMs: DAY_MS });
  await until(() => engine.webhook.reads > 0, { what: "the feed is read" });
  vi.advanceTimersByTime(LONG_MS);

  for (const [index, fate] of ofTeams.entries())
    if (fate === "told before")
      teams.edit.put(teamRecord(teamId(index), `early ${index}`, [personId(index)]));
  for (const [index, fate] of ofPeople.entries())
    if (fate === "told before")
      people.edit.put(personRecord(personId(index), "early", [teamId(index)], [`T${index}`]));
  await settled(engine);

  const late: (() => void)[] = [];
  /** Changes a record; reported now, later, or never. */
  const change = (fate: Fate, of: typeof teams, record: SourceRecord) => {
    if (fate === "told") of.edit.put(record);
    else of.edit.silently(record);
    const told = { current: { cellValuesByFieldId: { [of.table.table.primaryFieldId]: null } } };
    if (fate === "told late") late.push(() => of.edit.tell({ changedRecordsById: { [record.id]: told } }));
  };
  const renamed = new Set<number>();
  for (const [index, fate] of ofTeams.entries()) {
    if (fate === "silently gone") teams.table.records.delete(teamId(index));
    else if (fate === "silently made") change("silent", teams, teamRecord(`recN${index}`, `new ${index}`));
    else if (fate !== "nothing") {
      renamed.add(index);
      change(fate, teams, teamRecord(teamId(index), `renamed ${index}`, [personId(index)]));
    }
  }
  let isFollowing = 0;
  for (const [index, fate] of ofPeople.entries()) {
    const shown = (team: string, name = `P${index}`) =>
      personRecord(personId(index), name, [teamId(index)], [team]);
    if (fate === "nothing") continue;
    if (fate === "by itself") change("silent", people, shown("what time it is"));
    else if (fate === "follows team") {
      // A silent rename of a team leaves no trace.
      if (!renamed.has(index) || ofTeams[index] === "silent") continue;
      isFollowing++;
      people.edit.silently(shown(`renamed ${index}`));
    } else change(fate, people, shown(`T${index}`, "another"));
  }
  // A person whose team is reported is read again, which also finds unreported changes of that person.
  const isLed = (index: number) => ["told", "told late", "told before"].includes(ofTeams[index]!);
  const missed =
    ofTeams.filter((fate) => MISSED.has(fate)).length +
    ofPeople.filter((fate, index) => MISSED.has(fate) && !isLed(index)).length;

  await sweep(engine);
  for (const tell of late) tell();
  await settled(engine);
  await equal(engine, teams.table.records.values(), people.table.records.values());
  vi.advanceTimersByTime(CERTAIN_MS);
  const { reads } = engine.webhook;
  engine.webhook.notifier.notify();
  await until(() => engine.webhook.reads > reads, { what: "the feed is read once more" });
  // The count follows the read.
  engine.webhook.notifier.notify();
  await until(() => engine.webhook.reads > reads + 1, { what: "once more" });
  expect({ missed: engine.webhook.missed, isFollowing }).toEqual({ missed, isFollowing });
  await running.stop();
}

function base({ source, webhook }: LiveEngine) {
  const schemaTracker = teamsAndPeople();
  const teams = source.add(
    schemaTracker.teams,
    Array.from({ length: TEAMS }, (_, index) => teamRecord(teamId(index), `T${index}`, [personId(index)])),
  );
  const people = source.add(
    schemaTracker.people,
    Array.from({ length: PEOPLE }, (_, index) =>
      personRecord(personId(index), `P${index}`, [teamId(index)], [`T${index}`]),
    ),
  );
  return {
    teams: { table: teams, edit: editor(webhook, { source, table: teams }) },
    people: { table: people, edit: editor(webhook, { source, table: people }) },
  };
}

/** One scan of the reconciling sweep. */
async function sweep({ cadence, runs }: LiveEngine): Promise<void> {
  const passes = () => runs.filter((run) => run.isBackground).length;
  const before = passes();
  cadence.sweepEveryMs = 0;
  await passing(until(() => passes() > before, { what: "a scan is complete" }));
  cadence.sweepEveryMs = DAY_MS;
}

/** Sweeps wait for others, and missing records are requested again after some seconds. */
function settled(engine: LiveEngine): Promise<void> {
  return passing(engine.settled());
}

/** Time passes meanwhile. */
async function passing<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => vi.advanceTimersByTime(50), 10);
  return work.finally(() => clearInterval(timer));
}

async function equal(
  engine: LiveEngine,
  teams: Iterable<SourceRecord>,
  people: Iterable<SourceRecord>,
): Promise<void> {
  expect(await engine.rows("teams")).toEqual(rowsOf.teams(teams));
  expect(await engine.rows("people")).toEqual(rowsOf.people(people));
}
