import { expect, test } from "vitest";
import { createBase } from "../../../core/control/bases";
import {
  addCluster,
  approveRequest,
  createRequest,
  denyRequest,
  getDatabase,
  listRequests,
} from "../../../core/control/placement";
import { GOOD_KEY, managementApi } from "../../support/control-support";
import { replicaServer } from "../../support/replica-server";

const api = managementApi(replicaServer);
const { call, newAccount } = api;

const connect = (accountId: string) =>
  createBase(api.control.ctx, accountId, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne" });

test("a request is stored as it was sent, and visible to its account only", async () => {
  const [one, two] = [await newAccount(), await newAccount()];
  const body = { kind: "shared_database", message: "Both \u0000bases, please" };
  const made = await call("POST", "/api/v1/requests", { token: one.token, body });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    id: expect.stringMatching(/^req_/),
    kind: "shared_database",
    database_id: null,
    region: null,
    message: "Both bases, please",
    state: "open",
    answer: "",
    created_at: expect.any(String),
    decided_at: null,
  });
  expect((await call("GET", "/api/v1/requests", { token: one.token })).body).toEqual([made.body]);
  expect((await call("GET", "/api/v1/requests", { token: two.token })).body).toEqual([]);
  expect((await call("POST", "/api/v1/requests", { token: one.token, body })).body.error.code).toBe(
    "already_exists",
  );
  for (const method of ["GET", "POST"]) {
    expect((await call(method, "/api/v1/requests", method === "GET" ? {} : { body })).status).toBe(401);
  }
});

test("a request that lacks what its kind needs is refused with what is missing", async () => {
  const [owner, other] = [await newAccount(), await newAccount()];
  const base = await connect(other.id);
  const refused: [Record<string, unknown>, number, string][] = [
    [{ kind: "region" }, 422, "eu-central-1"],
    [{ kind: "region", region: "Moon; drop table" }, 422, "eu-central-1"],
    [{ kind: "writable" }, 422, "Choose the database"],
    [{ kind: "writable", database_id: "dat_%00" }, 422, "Choose the database"],
    [{ kind: "writable", database_id: base.database.id }, 404, "no database"],
    [{ kind: "other" }, 422, "Describe your request"],
    [{ kind: "money" }, 422, "kind"],
    [{ kind: "other", message: "x", priority: "high" }, 422, "priority"],
  ];
  for (const [body, status, part] of refused) {
    const answer = await call("POST", "/api/v1/requests", { token: owner.token, body });
    expect([body, answer.status]).toEqual([body, status]);
    expect(answer.body.error.message).toContain(part);
  }
});

test("the account's next database is created in an approved region; without a cluster there, it cannot be approved", async () => {
  const { ctx } = api.control;
  const [owner, other] = [await newAccount(), await newAccount()];
  const request = await createRequest(ctx.db, owner.id, { kind: "region", region: "EU-Central-1" });
  const decision = { by: "op@example.com", answer: "Welcome to Frankfurt" };
  await expect(approveRequest(ctx, request.id, decision)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("eu-central-1"),
  });
  await addCluster(ctx, { name: "frankfurt", region: "eu-central-1", adminUrl: ctx.config.replicaUrl! });
  expect(await approveRequest(ctx, request.id, decision)).toMatchObject({
    state: "approved",
    answer: "Welcome to Frankfurt",
    decidedAt: expect.any(Date),
  });
  const regionOf = async (accountId: string) => {
    const base = await connect(accountId);
    const [row] = await ctx.db`
      select c.region from databases as d join clusters as c on c.id = d.cluster_id where d.id = ${base.database.id}`;
    return row!.region;
  };
  expect(await regionOf(owner.id)).toBe("eu-central-1");
  expect(await regionOf(other.id)).toMatch(/us-west-2|eu-central-1/);
});

test("a request is decided once, also by concurrent decisions", async () => {
  const { ctx } = api.control;
  const owner = await newAccount();
  const { id } = await createRequest(ctx.db, owner.id, { kind: "other", message: "A pony" });
  const decided = await Promise.allSettled([
    denyRequest(ctx, id, { by: "one@example.com", answer: "No ponies" }),
    denyRequest(ctx, id, { by: "two@example.com", answer: "No ponies" }),
  ]);
  expect(decided.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  await expect(approveRequest(ctx, id, { by: "cli" })).rejects.toMatchObject({ code: "conflict" });
  expect(await listRequests(ctx.db, { accountId: owner.id })).toMatchObject([
    { state: "denied", answer: "No ponies" },
  ]);
  await createRequest(ctx.db, owner.id, { kind: "other", message: "A smaller pony" });
  expect((await listRequests(ctx.db, { accountId: owner.id })).map(({ state }) => state)).toEqual([
    "open",
    "denied",
  ]);
});

test("approving a writable database makes it writable, and its request is deleted with the database", async () => {
  const { ctx } = api.control;
  const owner = await newAccount();
  const base = await connect(owner.id);
  const ask = () => createRequest(ctx.db, owner.id, { kind: "writable", databaseId: base.database.id });
  await approveRequest(ctx, (await ask()).id, { by: "cli" });
  expect(await getDatabase(ctx.db, base.database.id)).toMatchObject({ isWritable: true });
  await expect(ask()).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("already"),
  });
});
