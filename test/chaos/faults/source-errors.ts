/** What the source answers when it is not well. */
import type { Sql } from "postgres";
import { FAULT_KINDS, type FaultKind } from "../../../apps/sandbox/faults";
import { until } from "../../support/poll";
import type { Chaos, Fault } from "../harness/chaos";
import { now } from "./kit";

/**
 * What nobody but time repairs: a cap that is spent is believed until the month ends, and looked at hourly. The rest is
 * over in seconds, but for a refused key, which is tried again after 3 minutes.
 */
const PATIENT: FaultKind[] = ["billing_limit", "unauthorized", "forbidden"];
const PASSING = FAULT_KINDS.filter((kind) => !PATIENT.includes(kind));
/** A base that was blocked by a 429 rests for 30 s; one whose key was refused for 3 minutes. */
const BLOCKED_MS = 90_000;
const REFUSED_MS = 300_000;
/** What it takes to heal from them, usually, ms. */
const REFUSED_LAST_MS = 180_000;

/** Longest that other faults keep the control plane away, ms. */
const CONTROL_BACK_MS = 90_000;

/**
 * Three refusals within ten minutes slow a base down for an hour, in which busy clients leave its sync a request in seven
 * seconds. Nobody waits for that hour here.
 */
async function letAnHourPass({ service }: Chaos): Promise<true> {
  const forget = async (control: Sql) => {
    await control`delete from quota_throttled`;
    await control`update quota_windows set throttled_until = 0, refused_at = '{}'`;
    return true as const;
  };
  // The control plane may be away.
  const options = { what: "an hour has passed", timeoutMs: CONTROL_BACK_MS, retryErrors: true };
  return until(() => service.onControl(forget), options);
}

/** One request in ten goes wrong, in one of many ways each: of one base, or of all. */
async function spoilAnswers({ service, random }: Chaos, kinds: readonly FaultKind[], baseId?: string) {
  const brokenAt = now();
  const ids: number[] = [];
  for (const kind of kinds) {
    const { id } = await service.source.call<{ id: number }>("POST", "faults", {
      kind,
      ...(baseId === undefined ? {} : { base: baseId }),
      // Lists that do not end, and answers that do not come, take as long as they are let.
      ...(kind === "hang" || kind === "slow_body" ? { delayMs: 2000 } : {}),
      probability: 0.1 / kinds.length,
      seed: random.int(1, 1e9),
    });
    ids.push(id);
  }
  await Bun.sleep(random.int(5000, 10_000));
  for (const id of ids) await service.source.call("DELETE", `faults/${id}`);
  return brokenAt;
}

export const spoiltAnswers: Fault = {
  name: "one request in ten goes wrong at the source",
  weight: 4,
  boundMs: BLOCKED_MS,
  aim: (chaos) => ({
    breaks: ["source"],
    async run() {
      const brokenAt = await spoilAnswers(chaos, PASSING);
      await letAnHourPass(chaos);
      return { brokenAt, repairedAt: now() };
    },
  }),
};

/** Its base rests for minutes, while other things befall the others. */
export const refusedKeys: Fault = {
  name: "the same of one base, and keys are refused",
  weight: 1,
  boundMs: REFUSED_MS,
  lastsMs: REFUSED_LAST_MS,
  aim(chaos) {
    const base = chaos.random.pick(chaos.service.bases);
    return {
      breaks: [`base ${base.facts.mode}`],
      isHeldUntilHealed: true,
      async run() {
        const kinds: FaultKind[] = [...PASSING, "unauthorized", "forbidden"];
        const brokenAt = await spoilAnswers(chaos, kinds, base.facts.sourceBaseId);
        await letAnHourPass(chaos);
        return { brokenAt, repairedAt: now() };
      },
    };
  },
};
