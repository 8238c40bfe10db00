/** Where a base's replica is: its credentials, a database that bases share, a customer's own. */
import { expect, test } from "vitest";
import { connectAs, managementApi, ownDatabase } from "../../support/control-support";

const api = managementApi();
const { call, connect, newAccount } = api;

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
  await using former = connectAs(old.url);
  await expect(former.db`select 1`).rejects.toMatchObject({ code: "28P01" });
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

  const url = new URL(api.control.serverUrl);
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
  expect(await api.control.ctx.db`select from databases where id = ${first.database.id}`).toEqual([]);
});

test("a customer's own database is used if its role may; otherwise the missing rights are reported", async () => {
  const { token } = await newAccount();
  await using own = await ownDatabase(api.control.serverUrl);
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
  expect(await refused(api.control.ctx.config.databaseUrl!)).toContain("belongs to Basetide");
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

test("a role that owns both schemas of a replica needs no right to create others", async () => {
  const { token } = await newAccount();
  await using own = await ownDatabase(api.control.serverUrl);
  const external = () => connect(token, { destination: { kind: "external", url: own.url, schema: "copy" } });
  await own.inside.unsafe(`create schema copy authorization ${own.name}`);
  const refused = await external();
  const statement = `create schema "copy_swap" authorization "${own.name}"`;
  expect([refused.status, refused.body.error.message]).toEqual([422, expect.stringContaining(statement)]);
  await own.inside.unsafe(statement);
  const made = await external();
  expect(made.status).toBe(201);
  expect((await call("DELETE", `/api/v1/bases/${made.body.id}`, { token })).status).toBe(204);
});
