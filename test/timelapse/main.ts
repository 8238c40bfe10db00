/**
 * Runs the whole service over simulated days: `bun run timelapse [--days 60] [--steps 1] [--from 2027-03-01]`.
 *
 * TIMELAPSE_SEED repeats a run's choices, TIMELAPSE_LOG names a file for the output of ended processes. Prints each day and a
 * table of what grows; exits with 1 if an invariant did not hold, something needed a person, or something grows without bound.
 */
import { parseArgs } from "node:util";
import { isSimulated, runSimulated } from "./harness/clock";
import { runDays } from "./harness/days";

const { values } = parseArgs({
  options: {
    days: { type: "string", default: "60" },
    steps: { type: "string", default: "1" },
    from: { type: "string", default: "2027-03-01" },
  },
});
const from = new Date(`${values.from}T00:00:00Z`);

if (isSimulated) {
  const violations = await runDays({ from, days: Number(values.days), steps: Number(values.steps) });
  process.exit(violations === 0 ? 0 : 1);
}
process.exit(await runSimulated(import.meta.path, process.argv.slice(2), from));
