/**
 * A customer names a hostile server as destination, which breaks the protocol at once, or after it has behaved, so that
 * every process that uses the base meets it, one after the other.
 */
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import { type Attack, Tally } from "../attack";
import { FREEZE_MS, healthMs, memoryOf, type Service } from "../service";
import { hostileServer, MODES } from "./hostile-server";

/** The most that a process may grow because of one connection. */
const MAX_GROWTH_BYTES = 400 * 1024 * 1024;
/** The longest time that an account waits for the console's answer about its destination. */
const ANSWER_MS = 8000;
/** A process may die within this time after an answer. */
const AFTER_MS = 400;
const TURNED_MS = 6000;

type Turned = (typeof MODES)[number];
const TURNED: Turned[] = ["sasl-crash", "row-description", "suspended", "hang"];

export const hostilePostgres: Attack = {
  name: "hostile-postgres",
  finding: "S4",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      await each(tally, [...MODES], (mode) => name(service, mode, random), service);
      tally.add(await watched(service, () => odd(service, random)));
      await each(tally, [...TURNED], (mode) => turn(service, mode, random), service);
    }
    return tally;
  },
};

/** All at once, which is fast if nothing happens. If something does, one after the other, to find the cause. */
export async function each<Mode extends string>(
  tally: Tally,
  modes: Mode[],
  work: (mode: Mode) => Promise<void>,
  service: Service,
): Promise<void> {
  const harm = await watched(service, () => Promise.all(modes.map(work)));
  if (!harm) return tally.addMany(modes.length, 0, "");
  const before = tally.succeeded;
  for (const mode of modes) {
    const own = await watched(service, () => work(mode));
    tally.add(own && `${mode}: ${own}`);
  }
  if (tally.succeeded === before) tally.add(`${modes.join(", ")} together: ${harm}`);
}

/** Names the server as a new base's destination. */
async function name(service: Service, mode: Turned, random: Random): Promise<void> {
  await using server = await hostileServer(mode, random);
  const source = await service.sourceBase("Hostile");
  const key = await service.key({ [source.id]: "create" });
  const destination = { kind: "external", url: server.url };
  const given = { platform: "airtable", api_key: key, base_id: source.id, destination };
  await answered(service.accounts.mallory.api("POST", "bases", given));
}

/** Destination URLs that need no server. */
async function odd(service: Service, random: Random): Promise<void> {
  const source = await service.sourceBase("Odd");
  const key = await service.key({ [source.id]: "create" });
  const url = random.pick([
    "postgres://u:p@[::1]:1/db",
    "postgres://u:p@[::ffff:127.0.0.1]:1/db",
    "postgres://u:p@[::1%25lo]/db",
    "postgres://u:p@127.0.0.1:0/db",
    "postgres://%00:%ff@127.0.0.1:1/%00",
    "postgres://u:p@a,b,c/db",
    "postgres://u:p@127.0.0.1:1/db?sslmode=verify-full&host=/tmp",
  ]);
  const destination = { kind: "external", url };
  const given = { platform: "airtable", api_key: key, base_id: source.id, destination };
  await answered(service.accounts.mallory.api("POST", "bases", given));
}

/** A base that synced to the server before it turned hostile: workers, a write through each proxy, and its deletion. */
async function turn(service: Service, mode: Turned, random: Random): Promise<void> {
  const { mallory } = service.accounts;
  await using database = await ownDatabase(service);
  await using server = await hostileServer("pass", random, database.url);
  const source = await service.sourceBase("Turns");
  const key = await service.key({ [source.id]: "create" });
  const destination = { kind: "external" as const, url: server.url };
  const base = await service.connect(mallory, source, {
    api_key: key,
    destination,
    settings: { live: false, turbo: true },
  });
  server.mode = mode;
  const write = (proxy: number) =>
    service.call(`${source.id}/Tasks/${source.recordIds[0]}`, key, {
      method: "PATCH",
      body: { fields: { Name: `turned ${proxy}` } },
      proxy,
      timeoutMs: ANSWER_MS,
    });
  await Promise.all([answered(write(0)), answered(write(1)), Bun.sleep(TURNED_MS)]);
  await answered(mallory.api("DELETE", `bases/${base.id}`));
  // When it behaves again, the remaining work can be done.
  server.mode = "pass";
  await service.recover();
  await service.disconnect(base);
}

export interface OwnDatabase extends AsyncDisposable {
  url: string;
}

/** Creates a database on the server that customers host, with an owner that is not a superuser. */
export async function ownDatabase(service: Service): Promise<OwnDatabase> {
  const name = `own_${crypto.randomUUID().replaceAll("-", "")}`;
  const admin = service.pool(service.elsewhere.url);
  await admin.unsafe(`create role ${name} login password 'own'`);
  await admin.unsafe(`create database ${name} owner ${name}`);
  const url = new URL(service.elsewhere.url);
  url.username = name;
  url.password = "own";
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      const ending = postgres(service.elsewhere.url, { max: 1, onnotice: () => {} });
      await ending.unsafe(`drop database if exists ${name} with (force)`).catch(() => undefined);
      await ending.end({ timeout: 1 });
    },
  };
}

/** Ignores the result of the call: a missing answer is not checked here. */
export async function answered(call: Promise<unknown>): Promise<void> {
  await Promise.race([call.catch(() => undefined), Bun.sleep(ANSWER_MS)]);
}

/** Runs `work`, and reports processes that died, froze or grew meanwhile. Restores them. */
async function watched(service: Service, work: () => Promise<unknown>): Promise<string | undefined> {
  service.takeDeaths();
  const before = service.processes.map((one) => memoryOf(one.pid));
  const found = new Set<string>();
  let isOver = false;
  const watching = service.processes.map(async (one, at) => {
    while (!isOver) {
      const ms = await healthMs(one.port);
      if (one.pid !== undefined && (ms === undefined || ms > FREEZE_MS)) found.add(`${one.name} frozen`);
      if (memoryOf(one.pid) - before[at]! > MAX_GROWTH_BYTES) found.add(`${one.name} grown past 400 MB`);
      await Bun.sleep(50);
    }
  });
  await work();
  await Bun.sleep(AFTER_MS);
  isOver = true;
  await Promise.all(watching);
  const deaths = service.takeDeaths().map((said) => said.split(":")[0]!);
  for (const frozen of await service.recover()) found.add(`${frozen} frozen for good`);
  const all = [...new Set(deaths), ...found];
  return all.length > 0 ? all.join(", ") : undefined;
}
