/** A base's usual traffic on the simulated rate limiter: a sync that is always hungry, and clients who ask at random times. */
import type postgres from "postgres";
import { LEAST_MARGIN_MS } from "../../core/limiter/base-queue";
import { LOOPBACK, mostWithin, randomOf, type Sent, World } from "./permit-simulation";
import { quantile } from "./quantile";

export interface Traffic {
  /** Requests a second of sync; 0: none. */
  share: number;
  /** Tables that sync reads at the same time, and how long the source takes to answer, ms. */
  tables?: number;
  latencyMs?: [number, number];
  /** Sync ends after as many. */
  pages?: number;
  proxies?: number;
  /** Requests a second of each proxy's clients. */
  rate?: number;
  /** One way, ms; as much as `jitterMs` more or less. */
  travelMs?: number;
  jitterMs?: number;
  /** Of the simulation, virtual ms. */
  forMs?: number;
}

export interface TrafficFigures {
  mostInASecond: number;
  /** Requests a second. */
  sync: number;
  clients: number;
  /** Waits of clients, ms; and without sync, what they would be in a single queue for all processes. */
  p50: number;
  p95: number;
  idealP95: number;
  /** Calls of the control plane a request, without heartbeats. */
  trades: number;
  /** When sync had the answer to its last page, ms. */
  endedAt: number;
}

export async function playTraffic(db: postgres.Sql, traffic: Traffic, seed: number): Promise<TrafficFigures> {
  const { share, tables = 3, latencyMs: [least, most] = [100, 250], pages = Infinity } = traffic;
  const { proxies = 0, rate = 1, travelMs = 80, jitterMs = 0, forMs = 117_000 } = traffic;
  const key = "airtable:appTraffic";
  const world = new World(db, { ...LOOPBACK, travelMs, jitterMs }, seed);
  await world.reset();
  const waits: number[] = [];
  let left = pages;
  let endedAt = 0;
  if (share > 0) {
    const worker = world.process();
    const sweep = async (random: () => number) => {
      while (world.now < forMs && left-- > 0) {
        await worker.send(key, "sync", { share });
        await world.sleep(least + random() * (most - least));
        endedAt = world.now;
      }
    };
    for (let table = 0; table < tables; table++) void sweep(randomOf(seed * 1000 + 100 + table));
  }
  // Clients ask at the same times whatever the limiter does.
  const ask = async (proxy: ReturnType<World["process"]>, random: () => number) => {
    await world.sleep(3000);
    while (world.now < forMs - 3000) {
      await world.sleep((-Math.log(1 - random()) * 1000) / rate);
      void proxy.send(key, "client").then((sent) => sent && waits.push(sent.sentAt - sent.askedAt));
    }
  };
  for (let proxy = 0; proxy < proxies; proxy++)
    void ask(world.process(`proxy${proxy}`), randomOf(seed * 1000 + proxy));
  await world.run(forMs);
  return {
    mostInASecond: mostWithin(world.sent.map(({ arrivedAt }) => arrivedAt)),
    sync: world.sent.filter(({ priority }) => priority === "sync").length / (forMs / 1000),
    clients: waits.length / ((forMs - 6000) / 1000),
    p50: waits.length > 0 ? quantile(waits, 0.5) : 0,
    p95: waits.length > 0 ? quantile(waits, 0.95) : 0,
    idealP95: waits.length > 0 ? quantile(idealWaits(world.sent), 0.95) : 0,
    trades: world.trades / world.sent.length,
    endedAt,
  };
}

/** Waits of these requests if all processes knew at once which of the five permits is ready first. */
function idealWaits(sent: Sent[]): number[] {
  const readyAt = Array.from({ length: 5 }, () => 0);
  return sent
    .map(({ askedAt }) => askedAt)
    .sort((a, b) => a - b)
    .map((askedAt) => {
      const sentAt = Math.max(askedAt, readyAt.shift()!);
      readyAt.push(sentAt + 1000 + LEAST_MARGIN_MS);
      return sentAt - askedAt;
    });
}
