/** The database that new replicas are copied from: a prepared server has one with a replica's functions in it. */
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  claimEpoch,
  databaseUrl,
  installReplica,
  loginOf,
  openReplica,
  type Provisioned,
  prepareCluster,
  provisionDatabase,
  TEMPLATE_DATABASE,
} from "../../../core/replica";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

let server: ReplicaServer;

beforeAll(async () => {
  server = await replicaServer();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

async function query<T extends object>(url: string, text: string): Promise<T[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await sql.unsafe<T[]>(text);
  } finally {
    await sql.end();
  }
}

const install = (url: string, { role }: Provisioned, isNew: boolean) =>
  installReplica(url, { schema: "public", role, isNew });

/** Claims a lease, and reads as the customer: returns how many rows `_sync_meta` has. */
async function useReplica(url: string, made: Provisioned): Promise<unknown[]> {
  const replica = openReplica({ url, schema: "public" });
  await claimEpoch(replica);
  await replica.close();
  const reader = Object.assign(new URL(url), { username: made.role, password: made.password }).href;
  return query(reader, "select count(*)::int as rows from _sync_meta");
}

test("a new database has the functions already; they are installed again if they are of another version, or the database is not new", async () => {
  const made = await provisionDatabase(server.clusterUrl);
  const url = databaseUrl(server.clusterUrl, made.database);
  const [copied] = await query<{ version: string; owner: string }>(
    url,
    `select obj_description(oid) as version, nspowner::regrole::text as owner
     from pg_namespace where nspname = 'public_swap'`,
  );
  expect(copied!.owner).toBe(new URL(server.clusterUrl).username);
  expect(copied!.version).toMatch(/^\d+ [0-9a-f]{16}$/);

  const changed = "drop function public_swap.shown_name cascade";
  const isThere = "select to_regproc('public_swap.shown_name') is not null as is_there";
  await query(url, changed);
  await install(url, made, true);
  expect(await query(url, isThere)).toEqual([{ is_there: false }]);
  await install(url, made, false);
  expect(await query(url, isThere)).toEqual([{ is_there: true }]);
  await query(url, `${changed}; comment on schema public_swap is '1 0123456789abcdef'`);
  await install(url, made, true);
  expect(await query(url, isThere)).toEqual([{ is_there: true }]);
  expect(await useReplica(url, made)).toEqual([{ rows: 1 }]);
});

/** Repeats `create` until `replace` ends, which waits after each replacement until another database was created. */
async function creatingAllTheTime(
  create: () => Promise<void>,
  replace: (another: () => Promise<void>) => Promise<void>,
): Promise<void> {
  let isOver = false;
  let created = 0;
  const creating = (async () => {
    for (; !isOver; created += 1) await create();
  })();
  // Awaited below; also if a replacement fails first.
  creating.catch(() => {});
  const another = async () => {
    const before = created;
    await Promise.race([creating, expect.poll(() => created, { timeout: 30_000 }).toBeGreaterThan(before)]);
  };
  await replace(another).finally(() => {
    isOver = true;
  });
  await creating;
}

test("I8: while an upgrade replaces the template, no database is created without the limits of its customer", async () => {
  const login = loginOf(server.clusterUrl, "the cluster's URL");
  const create = async () => {
    const { database, role } = await provisionDatabase(server.clusterUrl);
    const [may] = await query<{ loop: boolean }>(
      databaseUrl(server.clusterUrl, database),
      `select has_language_privilege('${role}', 'plpgsql', 'usage') as loop`,
    );
    expect(may).toEqual({ loop: false });
  };
  await creatingAllTheTime(create, async (another) => {
    for (let upgrade = 0; upgrade < 5; upgrade++) {
      await query(server.superuserUrl, `comment on database ${TEMPLATE_DATABASE} is 'an earlier version'`);
      await query(
        server.superuserUrl,
        `alter database ${TEMPLATE_DATABASE} is_template ${upgrade % 2 === 0}`,
      );
      await prepareCluster(server.superuserUrl, login);
      await another();
    }
  });
});

test("I8: no role may create objects in a new database, also on a server whose template lets all roles do so", async () => {
  const opened = Object.assign(new URL(server.superuserUrl), { pathname: "/template0" }).href;
  const allow = (isAllowed: boolean) =>
    query(server.superuserUrl, `alter database template0 allow_connections ${isAllowed}`);
  await allow(true);
  await query(opened, "grant create on schema public to public");
  await allow(false);
  await query(server.superuserUrl, `comment on database ${TEMPLATE_DATABASE} is 'an earlier version'`);
  await prepareCluster(server.superuserUrl, loginOf(server.clusterUrl, "the cluster's URL"));
  const { database, role } = await provisionDatabase(server.clusterUrl);
  const may = `select has_schema_privilege('${role}', 'public', 'create') as create`;
  expect(await query(databaseUrl(server.clusterUrl, database), may)).toEqual([{ create: false }]);
});

test("preparing the server for another role replaces the template, while databases are created from it", async () => {
  const login = { role: "basetide_successor", password: "pw", database: "postgres" };
  const successor = Object.assign(new URL(server.clusterUrl), {
    username: login.role,
    password: login.password,
  }).href;
  const create = async () => {
    const made = await provisionDatabase(server.clusterUrl);
    await install(databaseUrl(server.clusterUrl, made.database), made, true);
  };
  await creatingAllTheTime(create, async (another) => {
    for (const to of [login, loginOf(server.clusterUrl, "the cluster's URL"), login]) {
      expect(await prepareCluster(server.superuserUrl, to)).toEqual([]);
      await another();
    }
  });
  expect(
    await query(
      server.superuserUrl,
      `select datdba::regrole::text as owner, datallowconn from pg_database
       where starts_with(datname, '${TEMPLATE_DATABASE}')`,
    ),
  ).toEqual([{ owner: login.role, datallowconn: false }]);
  // What a copy of another's template grants is the other's: between finding it and copying it, it may change hands.
  await expect(
    query(server.clusterUrl, `create database stale template ${TEMPLATE_DATABASE}`),
  ).rejects.toThrow("permission denied to copy database");
  const made = await provisionDatabase(successor);
  const url = databaseUrl(successor, made.database);
  await install(url, made, true);
  expect(await useReplica(url, made)).toEqual([{ rows: 1 }]);
});
