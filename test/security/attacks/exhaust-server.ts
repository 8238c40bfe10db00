/** Abuses one replica's reader to exhaust the shared server: disk, transaction ids, connections, rights. */
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import { type Attack, Tally } from "../attack";
import type { Connected, Service } from "../service";

/** With three bases, a role must not take more than this share of the server's connections. */
const MAX_SHARE = 0.25;
const BASES = 3;
const TRIES_PER_BASE = 60;
/** More transaction ids than this from one session count as burning them, whatever else runs. */
const BURNED = 300;

/** Also the error for a paused role. */
const TOO_MANY_CONNECTIONS = "53300";

/** Must be refused, whatever the session has set before. */
const REFUSED = [
  "alter role current_user set temp_file_limit = -1",
  "alter role current_user connection limit 1000",
  "alter role current_user superuser",
  "alter role current_user bypassrls",
  "alter system set log_statement = 'all'",
  "set session_replication_role = 'replica'",
  "set temp_file_limit = -1",
  "set role postgres",
  "set session authorization postgres",
  "load 'dblink'",
  "select pg_reload_conf()",
  "select pg_switch_wal()",
  "select pg_create_physical_replication_slot('x')",
  "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'",
  "do $$ begin perform 1; end $$",
  "select txid_current()",
  "select pg_current_xact_id()",
  "create temp table mine (a int)",
  "create database x",
  "create role x",
  "checkpoint",
  "select lo_create(0)",
  "copy (select 1) to program 'true'",
  "select pg_read_file('/etc/hostname')",
  "select pg_export_snapshot(), pg_current_xact_id()",
  "lock table tasks in access exclusive mode",
];

export const exhaustServer: Attack = {
  name: "exhaust-server",
  finding: "S9",
  run: (service, rounds, random) => exhaust(service, rounds, random, (url) => service.fromOutside(url)),
};

/** Each attempt to log in costs the server a process, even if it is refused: only a firewall can prevent that. */
export const exhaustWithoutFirewall: Attack = {
  name: "exhaust-server, no firewall",
  finding: "S9",
  mayTakeLonger: ["sql", "write", "read", "console"],
  run: (service, rounds, random) => exhaust(service, rounds, random, (url) => url),
};

/** @param wayTo returns the URL of a replica's database */
async function exhaust(
  service: Service,
  rounds: number,
  random: Random,
  wayTo: (url: string) => string,
): Promise<Tally> {
  const tally = new Tally();
  const { mallory } = service.accounts;
  const bases = await Promise.all(
    Array.from({ length: BASES }, async () => {
      const source = await service.sourceBase("Exhaust");
      const key = await service.key({ [source.id]: "create" });
      return service.connect(mallory, source, { api_key: key, settings: { live: false } });
    }),
  );
  for (const base of bases) await mallory.change(base.id, { paused: true });
  for (let round = 0; round < rounds; round++) {
    await unlessPaused(() => statements(bases[0]!, random, tally), tally);
    await unlessPaused(async () => tally.add(await unlimitedDisk(bases[0]!)), tally);
    tally.add(await burnIds(service, bases[1]!));
    await connections(service, bases, wayTo, tally);
  }
  for (const base of bases) await service.disconnect(base);
  return tally;
}

/**
 * The statements use transaction ids, so the watchdog may have paused the role: then the attempt is refused at login.
 */
async function unlessPaused(attempt: () => Promise<void>, tally: Tally): Promise<void> {
  try {
    await attempt();
  } catch (error) {
    if (!(error instanceof postgres.PostgresError) || error.code !== TOO_MANY_CONNECTIONS) throw error;
    tally.add(false);
  }
}

/** In a session that has reset every default of its role. */
async function statements({ url }: Connected, random: Random, tally: Tally): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
  try {
    await sql`set default_transaction_read_only = off`;
    await sql`set statement_timeout = 0`;
    for (const statement of REFUSED.toSorted(() => random.next() - 0.5)) {
      const went = await sql.unsafe(statement).then(
        () => true,
        () => false,
      );
      tally.add(went && `went through: ${statement}`);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Sorts more than fits into memory; checks the limit instead of filling the disk. */
async function unlimitedDisk({ sql }: Connected): Promise<string | false> {
  const [row] = await sql<{ most: string }[]>`select current_setting('temp_file_limit') as most`;
  return row!.most === "-1" && "temporary files without a limit";
}

async function burnIds(service: Service, base: Connected): Promise<string | false> {
  const current = () =>
    service.asSuperuser(base, async (sql) => {
      const [row] = await sql<{ id: string }[]>`select pg_current_xact_id()::text as id`;
      return Number(row!.id);
    });
  const before = await current();
  for (const burner of [
    `do $$ begin for i in 1..${BURNED} loop perform txid_current(); commit; end loop; end $$`,
    "select count(txid_current()) from generate_series(1, 10)",
    "begin; set transaction read write; select pg_current_xact_id(); commit",
  ])
    await base.sql.unsafe(burner).catch(() => undefined);
  const burned = (await current()) - before;
  return burned >= BURNED && `${burned} transaction ids burned at once`;
}

/** Takes as many connections as possible, while the service needs one. */
async function connections(
  service: Service,
  bases: Connected[],
  wayTo: (url: string) => string,
  tally: Tally,
): Promise<void> {
  const urls = bases.flatMap(({ url }) => Array<string>(TRIES_PER_BASE).fill(wayTo(url)));
  const held = await Promise.all(
    urls.map(async (url) => {
      const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false, connect_timeout: 30 });
      const isOpen = await sql`select 1`.then(
        () => true,
        () => false,
      );
      return { sql, isOpen };
    }),
  );
  const open = held.filter(({ isOpen }) => isOpen).length;
  const [row] = await service.pool(service.replicas.url)<{ most: number }[]>`
    select current_setting('max_connections')::int as most`;
  const allowed = Math.floor(row!.most * MAX_SHARE);
  await Promise.all(held.map(({ sql }) => sql.end({ timeout: 1 })));
  const harm = `connections beyond a quarter of the server's ${row!.most}, by one account`;
  tally.addMany(urls.length, Math.max(0, open - allowed), harm);
}
