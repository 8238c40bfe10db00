/** Where a base's copy is kept: its credentials, a database that bases share, a customer's own. */
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../apps/console/app";
import { type Call, caller, connectAs, connectBase, type TestControl, testControl } from "./control-support";

let control: TestControl;
let call: Call;

beforeAll(async () => {
  control = await testControl();
  call = caller(consoleApp(control.ctx));
});
afterAll(() => control?.[Symbol.asyncDispose]());

let accounts = 0;
const newAccount = () => control.addAccount(`person${accounts++}@example.com`);
const connect = (token: string, body: Record<string, unknown> = {}) => connectBase(call, token, body);

test("rotated credentials open the database, and the old ones no longer do", async () => {
  const { token } = await newAccount();
  const { id } = (await connect(token)).body;
  const old = (await call("GET", `/api/v1/bases/${id}/credentials`, { token })).body;
  const rotated = await call("POST", `/api/v1/bases/${id}/credentials/rotate`, { token });
  expect(rotated.status).toBe(200);
  expect(rotated.body).toMatchObject({ user: old.user, database: old.database });
  expect(rotated.body.password).not.toBe(old.password);
  expect((await call("GET", `/api/v1/bases/${id}/credentials`, { token })).body).toEqual(rotated.body);
  await using sql = connectAs(rotated.body.url);
  expect(await sql.db`select 1 as one`).toEqual([{ one: 1 }]);
});

test("two bases share a database in two schemas; deleting one leaves the other, deleting both leaves nothing", async () => {
  const { token } = await newAccount();
  const first = (await connect(token)).body;
  const place = (schema: string) => ({
    base_id: "appTwo",
    destination: { kind: "existing", database_id: first.database.id, schema },
  });
  expect((await connect(token, place("public"))).body.error.code).toBe("already_exists");
  expect((await connect(token, place("sales_swap"))).body.error.code).toBe("destination_invalid");
  const second = await connect(token, place("sales"));
  expect(second.body.database).toEqual({ ...first.database, schema: "sales" });

  const url = new URL(control.serverUrl);
  url.pathname = `/${first.database.name}`;
  const schemas = async () => {
    await using sql = connectAs(url.href);
    return (await sql.db`select nspname from pg_namespace where nspname ~ '^(public|sales)' order by 1`).map(
      (row) => row.nspname,
    );
  };
  expect(await schemas()).toEqual(["public", "public_swap", "sales", "sales_swap"]);
  expect((await call("DELETE", `/api/v1/bases/${second.body.id}`, { token })).status).toBe(204);
  expect(await schemas()).toEqual(["public", "public_swap"]);
  expect((await call("DELETE", `/api/v1/bases/${first.id}`, { token })).status).toBe(204);
  await expect(schemas()).rejects.toMatchObject({ code: "3D000" });
  expect((await call("GET", "/api/v1/bases", { token })).body).toEqual([]);
  expect(await control.ctx.db`select from databases where id = ${first.database.id}`).toEqual([]);
});

test("a customer's own database is used when its role may, and told what is missing when not", async () => {
  const { token } = await newAccount();
  await using own = await ownDatabase(control.serverUrl);
  const external = (url: string) =>
    connect(token, { destination: { kind: "external", url, schema: "copy" } });
  const refused = async (url: string) => {
    const { status, body } = await external(url);
    expect([status, body.error.code]).toEqual([422, "destination_invalid"]);
    return body.error.message;
  };
  expect(await refused("mysql://a@b/c")).toContain("postgres://");
  expect(await refused("postgres://a:b@127.0.0.1:1/c")).toContain("cannot be reached");
  expect(await refused(own.url)).toContain("grant create on database");
  expect(await refused(control.ctx.config.databaseUrl!)).toContain("belongs to the service");
  await own.admin.unsafe(`grant create on database ${own.name} to ${own.name}`);
  const made = await external(own.url);
  expect(made.status).toBe(201);
  expect(made.body.database).toMatchObject({ name: own.name, schema: "copy" });
  const { body: credentials } = await call("GET", `/api/v1/bases/${made.body.id}/credentials`, { token });
  expect(credentials).toMatchObject({ user: own.name, password: "s/e:cret", database: own.name });
  expect(credentials.url).toContain("s%2Fe%3Acret");
  expect((await call("POST", `/api/v1/bases/${made.body.id}/credentials/rotate`, { token })).status).toBe(
    409,
  );
  expect((await call("DELETE", `/api/v1/bases/${made.body.id}`, { token })).status).toBe(204);
  const kept = await own.admin`select from pg_database where datname = ${own.name}`;
  expect(kept).toHaveLength(1);
});

/** A database and a role of the same name that may connect there and nothing more. */
async function ownDatabase(serverUrl: string) {
  const name = `customer_${crypto.randomUUID().slice(0, 8)}`;
  const admin = postgres(serverUrl, { max: 1, onnotice: () => {} });
  await admin.unsafe(`create role ${name} login password 's/e:cret'`);
  await admin.unsafe(`create database ${name}`);
  await admin.unsafe(`grant connect on database ${name} to ${name}`);
  const { host } = new URL(serverUrl);
  return {
    name,
    admin,
    url: `postgres://${name}:s%2Fe%3Acret@${host}/${name}`,
    async [Symbol.asyncDispose]() {
      await admin.unsafe(`drop database ${name} with (force)`);
      await admin.unsafe(`drop role ${name}`);
      await admin.end({ timeout: 1 });
    },
  };
}
