/**
 * Simulates users in the demo's base: they edit, add and finish tasks every few seconds, so that changes arrive in SQL.
 */
import { ControlError } from "../sandbox/errors";
import { Random } from "../sandbox/random";
import type { SandboxHandle } from "../sandbox/server";

const EVERY_MS = 2000;
/** The most tasks that the simulation adds, so that the base does not grow without end. */
const MAX_ADDED = 20;
const STATUSES = ["To do", "In progress", "Blocked", "Done"];
const VERBS = ["Call", "Draft", "Review", "Ship", "Measure", "Paint", "Translate"];
const THINGS = [
  "the harbor plan",
  "a lantern",
  "chapter nine",
  "the tide tables",
  "two bridges",
  "the invoice",
];

/** The tables of the generated base that the simulation uses. */
interface Place {
  id: string;
  name: string;
  ids: string[];
}

/** Starts the simulation. It stops when the returned value is disposed of. */
export function startLife(sandbox: SandboxHandle, baseId: string): Disposable {
  const random = new Random(`life ${Date.now()}`);
  const [projects, tasks] = sandbox.control
    .dump(baseId)
    .tables.map(
      (table): Place => ({ id: table.id, name: table.name, ids: table.records.map((record) => record.id) }),
    ) as [Place, Place];
  const added: string[] = [];
  let turn = 0;
  const live = () => {
    const { control } = sandbox;
    if (++turn % 3 !== 1) {
      const fields = { Status: random.pick(STATUSES), Amount: random.int(100, 100_000) / 100 };
      control.updateRecords(baseId, projects.id, [{ id: random.pick(projects.ids), fields }]);
    } else if (added.length === MAX_ADDED) {
      control.deleteRecords(baseId, tasks.id, [added.shift()!]);
    } else {
      const fields = { Name: `${random.pick(VERBS)} ${random.pick(THINGS)}`, Status: STATUSES[0] };
      added.push(...control.createRecords(baseId, tasks.id, [{ fields }]));
    }
  };
  const timer = setInterval(() => {
    try {
      live();
    } catch (error) {
      // A record that a visitor has deleted can no longer be edited.
      if (!(error instanceof ControlError)) throw error;
    }
  }, EVERY_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
