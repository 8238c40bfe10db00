/** API keys that lack access, or lose it: nothing is lost, and the owner gets the remedy. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { KeyOptions } from "../../../apps/sandbox/auth";
import { createAccount } from "../../../core/control/accounts";
import {
  type Base,
  createBase,
  getBase,
  listBases,
  listRuns,
  requestResync,
  updateSettings,
} from "../../../core/control/bases";
import { expectWell, needingAttention } from "../../support/base-states";
import { expectEqualToSource } from "../../support/equal-to-source";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { dumpTable } from "../../support/replica";

vi.setConfig({ maxConcurrency: 20 });

let fleet: Fleet;
let accountId: string;

beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "0.1" },
  });
  const account = await createAccount(fleet.ctx.db, { email: "keys@example.org", password: "correct horse" });
  accountId = account.id;
});
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** A base with one table, with three records by default. */
function sourceBase(records = 3): string {
  return fleet.sandbox.control.createBase({
    name: "Keys",
    tables: [
      {
        name: "Things",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: Array.from({ length: records }, (_, index) => ({ fields: { Name: `Thing ${index}` } })),
      },
    ],
  });
}

function connectWith(apiKey: string, sourceBaseId: string): Promise<Base> {
  return createBase(fleet.ctx, accountId, {
    platform: "airtable",
    apiKey,
    sourceBaseId,
    settings: { turbo: true, live: false },
  });
}

/** A synced base, with a key of its own. */
async function connected(options: KeyOptions = {}, records?: number) {
  const sourceBaseId = sourceBase(records);
  const key = fleet.sandbox.control.createKey(options);
  const base = await connectWith(key, sourceBaseId);
  await fleet.synced(base.id);
  return { base, key, sourceBaseId };
}

/** Replaces a key's rights while it is in use. */
function changeRights(token: string, options: KeyOptions): void {
  fleet.sandbox.control.createKey({ token, ...options });
}

test.concurrent.for([
  ["that was never issued", `patUnknown0000000.${"0".repeat(64)}`, /Authentication required/],
  ["of which only the id was pasted", "patUnknown0000000", /Invalid authentication token/],
  ["with characters that no key has", "pat\u2026\n", /invalid characters/],
  ["that is empty", "", /empty/],
] as const)("a key %s is refused with Airtable's text, and nothing is created", async ([, key, message]) => {
  const sourceBaseId = sourceBase();
  await expect(connectWith(key, sourceBaseId)).rejects.toMatchObject({
    code: "source_key_refused",
    message: expect.stringMatching(message),
  });
  const bases = await listBases(fleet.ctx.db, accountId);
  expect(bases.filter((base) => base.sourceBaseId === sourceBaseId)).toEqual([]);
});

test.concurrent("a key that cannot list bases is refused, with the hint that a scope may be missing", async () => {
  const key = fleet.sandbox.control.createKey({ scopes: ["data.records:read"] });
  await expect(connectWith(key, sourceBase())).rejects.toMatchObject({
    code: "source_forbidden",
    message: expect.stringMatching(/Invalid permissions.*scope/s),
  });
});

test.concurrent("a key for other bases only is refused", async () => {
  const key = fleet.sandbox.control.createKey({ bases: { [sourceBase()]: "read" } });
  await expect(connectWith(key, sourceBase())).rejects.toMatchObject({ code: "source_not_found" });
});

test.concurrent("a read-only key is all that a replica needs", async () => {
  const { base } = await connected({ scopes: ["schema.bases:read", "data.records:read"], bases: "read" });
  await expectEqualToSource(fleet, base);
});

test.concurrent("a revoked key leaves the rows readable, and a new key resumes the base", async () => {
  const { base, key, sourceBaseId } = await connected();
  const { control } = fleet.sandbox;
  const reader = await fleet.reader(base);
  const rows = await dumpTable(reader, "things");
  control.revokeKey(key);
  const refused = await needingAttention(fleet, base.id);
  expect(refused.error).toMatchObject({
    code: "source_key_refused",
    message: expect.stringMatching(/Authentication required.*Add a new key/s),
  });
  expect(await dumpTable(reader, "things")).toEqual(rows);

  const wrong = `patUnknown0000000.${"0".repeat(64)}`;
  await expect(updateSettings(fleet.ctx, refused, { apiKey: wrong })).rejects.toMatchObject({
    code: "source_key_refused",
  });
  expect(await getBase(fleet.ctx.db, base.id)).toMatchObject({ state: "needs_attention" });

  control.createRecords(sourceBaseId, "Things", [{ fields: { Name: "four" } }]);
  await updateSettings(fleet.ctx, refused, { apiKey: control.createKey() });
  expectWell(await fleet.synced(base.id));
  expect(await dumpTable(reader, "things")).toHaveLength(4);
});

test.concurrent("a key that is replaced, and then revoked, while a sync uses it causes no failure", async () => {
  const { base, key, sourceBaseId } = await connected({}, 1000);
  const { control } = fleet.sandbox;
  const requests = () => control.log(sourceBaseId).length;
  const before = requests();
  await until(() => requests() > before + 4, { what: "the next sync has started" });
  await updateSettings(fleet.ctx, base, { apiKey: control.createKey() });
  control.revokeKey(key);
  expectWell(await fleet.synced(base.id));
  const runs = await listRuns(fleet.ctx.db, base.id, 10);
  expect(runs.map((run) => run.error_code)).toEqual(runs.map(() => null));
});

test.concurrent("a key without data.records:read connects, and the base reports what it lacks", async () => {
  const sourceBaseId = sourceBase();
  const key = fleet.sandbox.control.createKey({ scopes: ["schema.bases:read"] });
  const base = await connectWith(key, sourceBaseId);
  expect((await needingAttention(fleet, base.id)).error).toMatchObject({
    code: "source_forbidden",
    message: expect.stringMatching(/Invalid permissions.*scope/s),
  });
  await updateSettings(fleet.ctx, base, { apiKey: fleet.sandbox.control.createKey() });
  expectWell(await fleet.synced(base.id));
  await expectEqualToSource(fleet, base);
});

test.concurrent("a key that loses schema.bases:read goes on syncing rows, and the base says since when", async () => {
  const { base, key, sourceBaseId } = await connected();
  const schemaError = async () => (await getBase(fleet.ctx.db, base.id)).schemaError;
  changeRights(key, { scopes: ["data.records:read"] });
  const refused = await until(schemaError, { what: "the refused schema is reported", timeoutMs: 60_000 });
  expect(refused).toMatchObject({ code: "source_forbidden", since: expect.any(String) });
  fleet.sandbox.control.createRecords(sourceBaseId, "Things", [{ fields: { Name: "four" } }]);
  const reader = await fleet.reader(base);
  await until(async () => (await dumpTable(reader, "things")).length === 4, { what: "the row is there" });
  changeRights(key, {});
  await until(async () => (await schemaError()) === null, { what: "the schema is read", timeoutMs: 60_000 });
  await expectEqualToSource(fleet, base);
}, 150_000);

test.concurrent.for([
  ["data.records:read", { scopes: ["schema.bases:read"] }],
  ["its access to the base", { bases: {} }],
] satisfies [string, KeyOptions][])(
  "a key that loses %s leaves the rows as they are until it gets it back",
  async ([, rights]) => {
    const { base, key, sourceBaseId } = await connected();
    const reader = await fleet.reader(base);
    const rows = await dumpTable(reader, "things");
    changeRights(key, rights);
    fleet.sandbox.control.createRecords(sourceBaseId, "Things", [{ fields: { Name: "four" } }]);
    const refused = await needingAttention(fleet, base.id);
    expect(refused.error).toMatchObject({
      code: "source_forbidden",
      message: expect.stringMatching(/Invalid permissions/),
    });
    expect(rows).toHaveLength(3);
    expect(await dumpTable(reader, "things")).toEqual(rows);

    changeRights(key, {});
    await requestResync(fleet.ctx, refused);
    expectWell(await fleet.synced(base.id));
    await expectEqualToSource(fleet, base);
  },
);
