/** What the source answers when it is not well. */
import type { Sql } from "postgres";
import { FAULT_KINDS, type FaultKind } from "../../../apps/sandbox/faults";
import type { Fault } from "../harness/chaos";
import { now } from "./kit";

/**
 * What nobody but time mends: a cap that is spent is believed until the month ends, and looked at hourly. The rest is
 * over in seconds, but for a refused key, which is tried again after 3 minutes.
 */
const PATIENT: FaultKind[] = ["billing_limit", "unauthorized", "forbidden"];
const PASSING = FAULT_KINDS.filter((kind) => !PATIENT.includes(kind));
/** A base that was blocked by a 429 rests for 30 s; one whose key was refused for 3 minutes. */
const BLOCKED_MS = 90_000;
const REFUSED_MS = 300_000;

/**
 * Three refusals within ten minutes slow a base down for an hour, in which busy clients leave its sync a request in seven
 * seconds. Nobody waits for that hour here.
 */
async function letAnHourPass(control: Sql): Promise<void> {
  await control`delete from quota_slowed`;
  await control`update quota_windows set slow_until = 0, refused_at = '{}'`;
}

/** A part of all requests goes wrong at the source, in one of many ways each. */
function sourceErrors(kinds: FaultKind[], name: string, weight: number, boundMs: number): Fault {
  return {
    name,
    weight,
    boundMs,
    async run({ service, random }) {
      const brokenAt = now();
      for (const kind of kinds) {
        await service.source.call("POST", "faults", {
          kind,
          // Lists that do not end, and answers that do not come, take as long as they are let.
          ...(kind === "hang" || kind === "slow_body" ? { delayMs: 2000 } : {}),
          probability: 0.1 / kinds.length,
          seed: random.int(1, 1e9),
        });
      }
      await Bun.sleep(random.int(5000, 10_000));
      await service.source.call("DELETE", "faults");
      await service.onControl(letAnHourPass);
      return { brokenAt, mendedAt: now() };
    },
  };
}

export const spoiltAnswers = sourceErrors(
  PASSING,
  "one request in ten goes wrong at the source",
  4,
  BLOCKED_MS,
);
export const refusedKeys = sourceErrors(
  [...PASSING, "unauthorized", "forbidden"],
  "the same, and keys are refused",
  1,
  REFUSED_MS,
);
