/**
 * Requests for another account's base without a key that it accepts: the owner waits, and the monthly budget is spent.
 */
import type { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import { type Attack, paced, Tally } from "../attack";
import type { Connected, Service } from "../service";

const PER_ROUND = 60;
const PER_SECOND = 30;
const OWNERS_CALLS = 4;
/** The owner's call alone takes a few ms; one that waits behind the attacker's takes seconds, ms. */
const SLOW_MS = 2500;
/** Every process stores its counts within this time, ms. */
const STORED_MS = 11_000;
const WHO = ["none", "garbage", "other base's", "revoked", "read of nothing", "basic"] as const;

export const starve: Attack = {
  name: "starve",
  finding: "S5",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { victim } = service.accounts;
    const source = await service.sourceBase("Starved");
    const other = await service.sourceBase("Other");
    const ownerKey = await service.key({ [source.id]: "create" });
    const workspace = await victim.ask<{ id: string }>("POST", "workspaces", {
      name: `Free ${random.int(1, 1e9)}`,
      plan: "free",
    });
    const base = await service.connect(victim, source, {
      api_key: ownerKey,
      settings: { live: false, paused: false },
      workspace_id: workspace.id,
    });
    await victim.change(base.id, { paused: true });
    let own = 0;
    const asOwner = async (proxy: number) => {
      own++;
      return service.call(`${source.id}/Tasks?maxRecords=1`, ownerKey, { proxy });
    };
    await asOwner(0);
    for (let round = 0; round < rounds; round++) {
      const attacking = paced(Array(PER_ROUND), PER_SECOND, async () => {
        const key = await keyFor(service, random, other.id);
        const path = random.pick([
          `${source.id}/Tasks`,
          `${source.id}/Tasks/${random.pick(source.recordIds)}`,
          `${source.id}/Tasks?pageSize=1`,
          `meta/bases/${source.id}/tables`,
        ]);
        const isWrite = random.chance(0.3) && !path.startsWith("meta");
        await service.call(path, key, {
          // A stranger may wait for long; that time is not checked.
          timeoutMs: 6000,
          proxy: random.int(0, 1),
          ...(isWrite ? { method: "POST", body: { fields: { Name: "x" } } } : {}),
        });
      });
      for (let call = 0; call < OWNERS_CALLS; call++) {
        await Bun.sleep(random.int(100, 500));
        const { status, ms } = await asOwner(call);
        tally.add((ms > SLOW_MS || status !== 200) && `the owner's call took ${ms.toFixed(0)} ms: ${status}`);
      }
      await attacking;
    }
    const all = rounds * PER_ROUND;
    const counted = await countedOf(base, own);
    tally.addMany(all, Math.max(0, Math.min(all, counted)), "a stranger's call counted in the budget");
    await service.disconnect(base);
    return tally;
  },
};

async function keyFor(service: Service, random: Random, otherBase: string): Promise<string | undefined> {
  const who = random.pick(WHO);
  if (who === "none") return undefined;
  if (who === "garbage" || who === "basic") return `pat${random.int(1, 1e9)}.${random.int(1, 1e9)}`;
  const key = await service.key(who === "other base's" ? { [otherBase]: "create" } : {});
  if (who === "revoked") await service.sandbox.call("DELETE", "keys", { token: key });
  return key;
}

/** Clients' calls of the base that were counted besides the owner's own: once all processes have stored their counts. */
async function countedOf(base: Connected, own: number): Promise<number> {
  const from = performance.now();
  let client = 0;
  const isSettled = async () => {
    if (performance.now() - from < STORED_MS) return false;
    const { budget } = await base.account.base(base.id);
    client = budget?.used.client ?? 0;
    return client >= own;
  };
  await until(isSettled, { what: "the budget counts the owner's calls", timeoutMs: 4 * STORED_MS });
  return client - own;
}
