/** Error answers of the source. */
import type { Sql } from "postgres";
import { FAULT_KINDS, type FaultKind } from "../../../apps/sandbox/faults";
import { until } from "../../support/poll";
import type { Chaos, Fault } from "../harness/chaos";
import { now } from "./kit";

/**
 * Faults that only time ends: a spent monthly cap is believed until the month ends, and is retried hourly. The others
 * end within seconds, except a rejected key, which is retried after 3 minutes.
 */
const PATIENT: FaultKind[] = ["billing_limit", "unauthorized", "forbidden"];
const PASSING = FAULT_KINDS.filter((kind) => !PATIENT.includes(kind));
/** A base that was blocked by a 429 pauses for 30 s; one whose key was rejected, for 3 minutes. */
const BLOCKED_MS = 90_000;
const REFUSED_MS = 300_000;
/** The usual time to recover from them, ms. */
const REFUSED_LAST_MS = 180_000;

/** The longest time for which other faults make the control plane unreachable, ms. */
const CONTROL_BACK_MS = 90_000;

/**
 * Three refusals within ten minutes slow a base down for an hour, in which busy clients leave its sync one request in
 * seven seconds. This test moves that hour into the past instead of waiting.
 */
async function letAnHourPass({ service }: Chaos): Promise<true> {
  const forget = async (control: Sql) => {
    await control`delete from quota_throttled`;
    await control`update quota_keys set refused_at = '{}'`;
    return true as const;
  };
  // The control plane may be unreachable.
  const options = { what: "an hour has passed", timeoutMs: CONTROL_BACK_MS, retryErrors: true };
  return until(() => service.onControl(forget), options);
}

/** Makes one request in ten fail, in one of many ways each: for one base, or for all. */
async function spoilAnswers({ service, random }: Chaos, kinds: readonly FaultKind[], baseId?: string) {
  const brokenAt = now();
  const ids: number[] = [];
  for (const kind of kinds) {
    const { id } = await service.source.call<{ id: number }>("POST", "faults", {
      kind,
      ...(baseId === undefined ? {} : { base: baseId }),
      // Lists without an end and missing answers take as long as the client allows.
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

/** Its base pauses for minutes, while the other bases meet other faults. */
export const refusedKeys: Fault = {
  name: "the same of one base, and keys are refused",
  weight: 1,
  boundMs: REFUSED_MS,
  lastsMs: REFUSED_LAST_MS,
  aim(chaos) {
    const base = chaos.random.pick(chaos.service.bases);
    return {
      // Two such faults would each wait until the other one's base has recovered.
      breaks: [`base ${base.facts.mode}`, "keys"],
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
