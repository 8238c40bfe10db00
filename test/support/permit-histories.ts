/** Random histories of a base's requests: processes, networks, and what happens to them. */
import fc from "fast-check";
import type postgres from "postgres";
import { type LOOPBACK, type SimulatedProcess, World } from "./permit-simulation";

/** The base of every history. */
const KEY = "airtable:appHistory";
const RUN_MS = 40_000;
/** Longest wait of a client. */
export const DEADLINE_MS = 20_000;

const networks = fc.record({
  travelMs: fc.constantFrom(1, 80, 200),
  jitterMs: fc.constantFrom(0, 20, 60),
  statementMs: fc.constantFrom<[number, number]>([0.5, 3], [5, 40], [80, 130]),
  stallEveryMs: fc.constantFrom(0, 500, 3000),
  stallMs: fc.constantFrom(50, 400, 2500),
});

/** What happens to one of the processes, or to the control plane. */
const faults = fc.array(
  fc.record({
    atMs: fc.integer({ min: 1000, max: RUN_MS - 12_000 }),
    forMs: fc.integer({ min: 100, max: 12_000 }),
    what: fc.constantFrom("kill", "stall", "cut", "deaf", "down", "crash", "refuse" as const),
    which: fc.nat({ max: 5 }),
  }),
  { maxLength: 5 },
);

export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.integer(),
  network: networks,
  proxies: fc.integer({ min: 0, max: 4 }),
  /** Requests a second of each proxy's clients. */
  rate: fc.constantFrom(0.3, 1, 4, 12),
  /** Workers that sync the base; two if two accounts have it connected. */
  workers: fc.integer({ min: 0, max: 2 }),
  share: fc.constantFrom(3, 5),
  user: fc.constantFrom(null, "airtable:usrHistory"),
  faults,
});

export interface History {
  seed: number;
  network: typeof LOOPBACK;
  proxies: number;
  rate: number;
  workers: number;
  share: number;
  user: string | null;
  faults: { atMs: number; forMs: number; what: string; which: number }[];
}

function inflict(
  world: World,
  processes: SimulatedProcess[],
  { atMs, forMs, what, which }: History["faults"][0],
) {
  const process = processes[which % processes.length];
  if (!process) return;
  const during = (set: (isOn: boolean) => void) => {
    set(true);
    world.at(world.now + forMs, () => set(false));
  };
  world.at(atMs, () => {
    if (what === "kill") process.kill();
    else if (what === "stall") process.stall(forMs);
    else if (what === "down")
      during((isOn) => {
        world.isDown = isOn;
      });
    else if (what === "crash") void world.crash();
    else if (what === "refuse") void world.refuse(process, KEY, forMs);
    else
      during((isOn) => {
        process.way = isOn ? (what as "cut" | "deaf") : "open";
      });
  });
}

export async function playHistory(db: postgres.Sql, history: History): Promise<World> {
  const { network, seed, proxies, rate, workers, share, user } = history;
  const world = new World(db, network, seed);
  await world.reset();
  const processes: SimulatedProcess[] = [];
  for (let i = 0; i < workers; i++) {
    const worker = world.process();
    processes.push(worker);
    for (let table = 0; table < 3; table++)
      void (async () => {
        while (world.now < RUN_MS) {
          const priority = table === 0 && seed % 2 === 0 ? "live" : "sync";
          await worker.send(KEY, priority, { share, user });
          await world.sleep(50 + world.random() * 200);
        }
      })();
  }
  for (let i = 0; i < proxies; i++) {
    const proxy = world.process(`proxy${i}`);
    processes.push(proxy);
    void (async () => {
      while (world.now < RUN_MS) {
        await world.sleep((-Math.log(1 - world.random()) * 1000) / rate);
        const isProven = world.random() < 0.9;
        const deadlineAt = proxy.holder.clock.now() + DEADLINE_MS;
        void proxy.send(KEY, isProven ? "client" : "unproven", { isOwnKey: true, deadlineAt });
      }
    })();
  }
  for (const fault of history.faults) inflict(world, processes, fault);
  await world.run(RUN_MS);
  return world;
}
