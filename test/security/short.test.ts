/**
 * The short form: each attack once on one service of real processes. None succeeds, and no process dies. `bun run
 * attack` is the long form, with a canary and its limits.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Random } from "../../apps/sandbox/random";
import { slowness } from "../support/machine-speed";
import { attacks } from "./attacks";
import { Service } from "./service";

/** Repeats the random choices; a failure reports it. */
const seed = Number(process.env.ATTACK_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const ATTACK_MS = 120_000;
/** The start of three servers, five processes and a source on a busy machine, ms. */
const START_MS = 180_000;

let service: Service;
beforeAll(async () => {
  service = await Service.start();
}, START_MS);
afterAll(() => service?.[Symbol.asyncDispose]());

test.for(attacks.map((attack) => [`${attack.name} (${attack.finding})`, attack] as const))(
  "I8: refused: %s",
  // An attack that rarely succeeds has succeeded: no second try.
  { timeout: ATTACK_MS * slowness(), tags: "once" },
  async ([name, attack]) => {
    const result = await attack.run(service, 1, new Random(`${seed} ${name}`));
    const frozen = await service.recover();
    const { succeeded, notes } = result;
    expect({ succeeded, notes, frozen, deaths: service.takeAllDeaths() }, `ATTACK_SEED=${seed}`).toEqual({
      succeeded: 0,
      notes: [],
      frozen: [],
      deaths: [],
    });
    expect(result.attempted).toBeGreaterThan(0);
  },
);
