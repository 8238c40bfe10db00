import { expect, test } from "vitest";
import {
  completeSchemaCheck,
  createBase,
  listSchemaChanges,
  recordSchemaChanges,
} from "../../../core/control/bases";
import { trimTables } from "../../../core/control/retention";
import type { ShapeChange } from "../../../core/replica";
import { GOOD_KEY, managementApi } from "../../support/control-support";

const api = managementApi();
const { call, newAccount } = api;

async function newBase() {
  const owner = await newAccount();
  const base = await createBase(api.control.ctx, owner.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  return { base, token: owner.token, path: `/api/v1/bases/${base.id}/schema-changes` };
}

const renamed: ShapeChange = {
  kind: "field_renamed",
  table: "things",
  field: "amount",
  before: { source_name: "Cou\u0000nt", name: "count", source_type: "number", type: "numeric" },
  after: { source_name: "Amount", name: "amount", source_type: "number", type: "numeric" },
};
const dropped: ShapeChange = {
  kind: "table_dropped",
  table: "others",
  field: null,
  before: { source_name: "Others", name: "others" },
  after: null,
};

test("changes of a base's schema are listed, newest first, to its own account only", async () => {
  const { base, token, path } = await newBase();
  const { token: stranger } = await newBase();
  expect((await call("GET", path, { token })).body).toEqual([]);
  await recordSchemaChanges(api.control.ctx.db, base.id, [renamed]);
  await recordSchemaChanges(api.control.ctx.db, base.id, [dropped]);
  const { status, body } = await call("GET", path, { token });
  expect(status).toBe(200);
  expect(body).toEqual([
    { id: expect.any(String), seen_at: expect.stringMatching(/^20.*Z$/), severity: "breaking", ...dropped },
    {
      id: expect.any(String),
      seen_at: expect.any(String),
      severity: "rename",
      ...renamed,
      before: { ...renamed.before, source_name: "Count" },
    },
  ]);
  expect((await call("GET", `${path}?limit=1`, { token })).body).toHaveLength(1);
  expect((await call("GET", `${path}?severity=rename`, { token })).body).toMatchObject([{ table: "things" }]);
  expect((await call("GET", `${path}?severity=odd`, { token })).status).toBe(422);
  expect((await call("GET", `${path}?limit=0`, { token })).status).toBe(422);
  expect((await call("GET", path, { token: stranger })).status).toBe(404);
  expect((await call("GET", path)).status).toBe(401);
  const { body: description } = await call("GET", "/openapi", { token });
  expect(JSON.stringify(description)).toContain("schema-changes");
});

test("changes are kept for a year, and deleted with their base", async () => {
  const { base } = await newBase();
  const { db } = api.control.ctx;
  await recordSchemaChanges(db, base.id, [renamed, dropped]);
  await db`update schema_changes set seen_at = now() - interval '366 days' where kind = 'field_renamed'`;
  expect(await listSchemaChanges(db, base.id, 10)).toMatchObject([{ kind: "table_dropped" }]);
  await trimTables(db);
  expect(await db`select from schema_changes where base_id = ${base.id}`).toHaveLength(1);
  await recordSchemaChanges(db, "bas_00000000000000000000", [dropped]);
  expect(await db`select from schema_changes where base_id = 'bas_00000000000000000000'`).toHaveLength(0);
});

test("a requested schema check is settled, but not one that was requested since", async () => {
  const { base } = await newBase();
  const { db } = api.control.ctx;
  const request = async () => {
    const [row] = await db<{ at: Date }[]>`
      update bases set schema_check_requested_at = clock_timestamp() where id = ${base.id}
      returning schema_check_requested_at as at`;
    return row!.at;
  };
  const requested = async () =>
    (await db`select schema_check_requested_at as at from bases where id = ${base.id}`)[0]!.at;
  const first = await request();
  await completeSchemaCheck(db, base.id, first);
  expect(await requested()).toBeNull();
  await db`update bases set schema_check_requested_at = ${first}::timestamptz + interval '1 second' where id = ${base.id}`;
  await completeSchemaCheck(db, base.id, first);
  expect(await requested()).toBeInstanceOf(Date);
});
