/** Faults at named points: at the exact statement that a process sends to a database. */
import { Client } from "pg";
import type { Held, HoldPoint } from "../../support/fault-proxy";
import { until } from "../../support/poll";
import { type Chaos, type Fault, NotReached } from "../harness/chaos";
import type { Taken } from "../harness/parts";
import type { Cluster } from "../harness/service";
import type { Role, Supervised } from "../harness/supervised";
import type { WatchedBase } from "../harness/watched-base";
import { holdings, killed, now } from "./kit";

/** The longest wait for such a statement, ms: the process that would send it may be recovering from other faults. */
const POINT_MS = 120_000;
/**
 * The same for the feed's cursor, which does not move while anything is deferred: a rebuild, a record that is not
 * found.
 */
const CURSOR_MS = 160_000;
/**
 * A table is retyped again if no swap was held by then, ms: a worker that another fault has claimed may have done it.
 * Not sooner: each time, a build that is under way starts over.
 */
const AGAIN_MS = 40_000;
/** By then, a swap that was released waits for its lock, ms. */
const INSIDE_MS = 150;

/**
 * Holds the service at a statement that a process sends to a cluster: one of the processes that the fault claimed, if
 * any.
 */
async function at(
  { service }: Chaos,
  { taken, cluster, role }: { taken: Taken; cluster: Cluster; role: Role | undefined },
  statement: RegExp,
  point: HoldPoint,
): Promise<{ held: Held; client: Supervised }> {
  let client: Supervised | undefined;
  const held = await cluster.line
    .hold(
      (text, port) => {
        if (!statement.test(text)) return false;
        client = service.clientOf(cluster, port);
        return role === undefined ? client !== undefined : taken.takes(client);
      },
      point,
      AbortSignal.timeout(POINT_MS),
    )
    .catch(() => {
      throw new NotReached(`no statement ${statement.source} within ${POINT_MS} ms`);
    });
  return { held, client: client! };
}

const APPLY = /\."apply_row_images_/;
const GOES_LIVE = /\.(move_in|merge_in)\(/;
const CURSOR = /update live_feeds\b[^;]*\bcursor = /;

/** Kills a process between the source's answer and the replica's commit, or right after the commit. */
export function killAtCommit(role: Role, point: HoldPoint): Fault {
  const when =
    point === "before" ? "between source answer and replica commit" : "between replica commit and answer";
  return {
    name: `kill -9 of a ${role} ${when}`,
    weight: 3,
    sparesWrites: true,
    aim(chaos) {
      const cluster = chaos.random.pick(chaos.service.clusters);
      return {
        needs: ["control", "source", cluster.part],
        role,
        isNamedLater: true,
        async run(taken) {
          const orphans = await holdings(chaos);
          const { held, client } = await at(chaos, { taken, cluster, role }, APPLY, point);
          const done = await killed(chaos, client, role === "worker" ? orphans.get(client.name) : undefined);
          // Data that a killed process has sent may still arrive, or be lost.
          if (chaos.random.chance(0.5)) held.pass();
          else held.cut();
          return done;
        },
      };
    },
  };
}

/** Cuts the proxy's connection to the replica after the source has written: the client must still get its answer. */
export const cutAtCommit: Fault = {
  name: "a proxy's way to the replica cut before its commit",
  weight: 2,
  aim(chaos) {
    const cluster = chaos.random.pick(chaos.service.clusters);
    return {
      needs: ["control", "source", cluster.part],
      role: "proxy",
      isNamedLater: true,
      async run(taken) {
        const { held } = await at(chaos, { taken, cluster, role: "proxy" }, APPLY, "before");
        held.cut();
        return { brokenAt: now(), repairedAt: now() };
      },
    };
  },
};

/** Kills something while a table goes live, inside that transaction. */
export function killInSwap(victim: "worker" | "replicas"): Fault {
  return {
    name: `kill -9 of ${victim === "worker" ? "a worker" : "Postgres"} in the swap's transaction`,
    weight: 3,
    sparesWrites: victim === "worker",
    aim(chaos) {
      const { random, service } = chaos;
      const base = random.pick(service.bases);
      const { cluster } = base;
      const isWorker = victim === "worker";
      const role = isWorker ? victim : undefined;
      return {
        needs: ["control", "source", `base ${base.facts.mode}`, ...(isWorker ? [cluster.part] : [])],
        ...(isWorker ? { role: victim, isNamedLater: true } : { breaks: [cluster.part] }),
        async run(taken) {
          const orphans = await holdings(chaos);
          const point = at(chaos, { taken, cluster, role }, GOES_LIVE, "before");
          point.catch(() => {});
          await base.retype();
          const again = setInterval(() => void base.retype().catch(() => {}), AGAIN_MS);
          const { held, client } = await point.finally(() => clearInterval(again));
          const locks = await Promise.all(
            service.bases.filter((one) => one.cluster === cluster).map(lockCatalog),
          );
          try {
            held.pass();
            await Bun.sleep(INSIDE_MS);
            if (isWorker) return await killed(chaos, client, orphans.get(client.name) ?? []);
            const brokenAt = now();
            await cluster.postgres.kill();
            await cluster.postgres.start();
            return { brokenAt, repairedAt: now(), returned: [cluster.part] };
          } finally {
            for (const release of locks) await release();
          }
        },
      };
    },
  };
}

/**
 * The catalog is the last thing that a swap writes: a lock on it prevents the swap from ending. @returns the release
 */
async function lockCatalog({ facts }: WatchedBase): Promise<() => Promise<void>> {
  // Not with the driver used elsewhere, which fails when a server dies within its transaction.
  const client = new Client({ connectionString: facts.ownerUrl });
  client.on("error", () => {});
  await client.connect();
  await client.query("begin");
  await client.query("lock table public_swap._tables in share mode");
  return () => client.end().catch(() => {});
}

/** As above, with a write that was already sent, and that arrives only when another worker has the lease. */
export const freezeAtCommit: Fault = {
  name: "SIGSTOP of a worker with a write on its way, until it is overtaken",
  weight: 3,
  sparesWrites: true,
  lastsMs: 15_000,
  aim(chaos) {
    const { clusters } = chaos.service;
    const cluster = chaos.random.pick(clusters);
    return {
      needs: ["control", "source", ...clusters.map(({ part }) => part)],
      role: "worker",
      isNamedLater: true,
      async run(taken) {
        const orphans = await holdings(chaos);
        const { held, client } = await at(chaos, { taken, cluster, role: "worker" }, APPLY, "before");
        const brokenAt = now();
        const bases = orphans.get(client.name) ?? [];
        client.freeze();
        try {
          const isOvertaken = async () => (await chaos.heldBy(client)).length === 0;
          await until(isOvertaken, {
            what: "a frozen worker has lost its lease",
            timeoutMs: 60_000,
            intervalMs: 200,
          });
          held.pass();
          await Bun.sleep(500);
        } finally {
          held.pass();
          client.thaw();
        }
        return { brokenAt, repairedAt: now(), orphans: bases };
      },
    };
  },
};

/** Kills a worker when the changes of the feed are in the replica, and the feed's cursor has not moved yet. */
export const killAtCursor: Fault = {
  name: "kill -9 of a worker between payload and cursor",
  weight: 3,
  sparesWrites: true,
  aim(chaos) {
    const { service, random } = chaos;
    const live = service.bases.find(({ facts }) => facts.mode === "live");
    return {
      needs: ["control", "source", ...(live ? [live.cluster.part, "base live" as const] : [])],
      role: "worker",
      isNamedLater: true,
      async run(taken) {
        const workers = service.of("worker");
        const held = await holdings(chaos);
        const over = new AbortController();
        const found = workers.map(async (worker) => {
          const signal = AbortSignal.any([over.signal, AbortSignal.timeout(CURSOR_MS)]);
          const isHere = (text: string) => CURSOR.test(text) && taken.takes(worker);
          return { worker, at: await worker.control.hold(isHere, "before", signal) };
        });
        const { worker, at: point } = await Promise.any(found).catch(() => {
          throw new NotReached(`no statement ${CURSOR.source} within ${CURSOR_MS} ms`);
        });
        over.abort();
        const done = await killed(chaos, worker, held.get(worker.name) ?? []);
        if (random.chance(0.5)) point.pass();
        else point.cut();
        // It may have reached the point twice before the wait was aborted.
        for (const other of await Promise.allSettled(found))
          if (other.status === "fulfilled") other.value.at.pass();
        return done;
      },
    };
  },
};
