/** What is encrypted at rest, and how its key is rotated while services run. */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createWebhook } from "../../../core/alerts";
import { createBase, openApiKey, replicaTarget } from "../../../core/control/bases";
import { newAttachmentKey } from "../../../core/control/bases/attachment-keys";
import { createDraft, setDraftKey } from "../../../core/control/onboarding";
import { createSqlUser, databaseCredentials, getDatabase } from "../../../core/control/placement";
import { examineEncryption, rotateEncryption } from "../../../core/control/setup";
import { contextOf, type EncryptedColumn, encryptedColumns } from "../../../core/control/setup/encryption";
import { createSecretBox, newSecret, type SecretContext } from "../../../core/secrets";
import { consoleClient } from "../../support/console-client";
import { PASSWORD } from "../../support/console-support";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { operate as operateHere, operatorEnv } from "../../support/operator";

let control: TestControl;
beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

const newKey = () => randomBytes(32).toString("base64");

/** The context of a process that was started with these keys: the first one encrypts, all decrypt. */
function startedWith(...keys: [string, ...string[]]): TestControl["ctx"] {
  const [secretKey, ...previousSecretKeys] = keys;
  const { ctx } = control;
  return { ...ctx, config: { ...ctx.config, secretKey, previousSecretKeys }, secrets: createSecretBox(keys) };
}

/** A row in every table with an encrypted column, written by the product itself where there is a short way. */
async function plant(): Promise<{ baseId: string; databaseId: string }> {
  const { ctx } = control;
  const account = await control.addAccount(`${crypto.randomUUID()}@example.org`);
  const base = await createBase(ctx, account.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  const draft = await createDraft(ctx, account.id, "airtable");
  await setDraftKey(ctx, draft, GOOD_KEY);
  const encrypt = (table: string, column: string, id: string, plain: string) =>
    ctx.secrets.encrypt(plain, contextOf({ table, column, key: "id" }, id));
  await ctx.db`update base_drafts set encrypted_url = ${encrypt("base_drafts", "encrypted_url", draft.id, "postgres://x")}
    where id = ${draft.id}`;
  await ctx.db`
    insert into live_feeds (base_id, webhook_id, encrypted_secret)
    values (${base.id}, 'ach1', ${ctx.secrets.encrypt("mac", `live_feeds.secret:${base.id}`)})
    on conflict (base_id) do update set webhook_id = 'ach1', encrypted_secret = excluded.encrypted_secret`;
  const item = `chi_${randomBytes(10).toString("hex")}`;
  const set = `chs_${item.slice(4)}`;
  const cells = (column: string) => encrypt("change_items", column, item, "{}");
  await ctx.db`insert into change_sets (id, base_id, state, ended_at) values (${set}, ${base.id}, 'applied', now())`;
  await ctx.db`
    insert into change_items (
      id, set_id, position, operation, table_ref, encrypted_cells, encrypted_expected, encrypted_before,
      encrypted_after, encrypted_error)
    values (${item}, ${set}, 0, 'create', 'tblA', ${cells("encrypted_cells")}, ${cells("encrypted_expected")},
      ${cells("encrypted_before")}, ${cells("encrypted_after")}, ${cells("encrypted_error")})`;
  await createWebhook(ctx, account.id, { name: "mine", form: "json", url: "http://127.0.0.1:9/x" });
  await ctx.db`
    update bases set encrypted_attachment_key = ${newAttachmentKey(ctx, base.id)},
      encrypted_hash_key = ${ctx.secrets.encrypt(newSecret(), `bases.hash_key:${base.id}`)},
      encrypted_write_secret = ${encrypt("bases", "encrypted_write_secret", base.id, "secret")} where id = ${base.id}`;
  await createSqlUser(
    { ...ctx, actor: { kind: "system", name: "test" } },
    await getDatabase(ctx.db, base.database.id),
    "Metabase",
  );
  const external = `dat_${randomBytes(10).toString("hex")}`;
  await ctx.db`
    insert into databases (
      id, account_id, name, role_name, encrypted_url, encrypted_reader_url, external_host, external_port)
    values (${external}, ${account.id}, 'own', 'me', ${encrypt("databases", "encrypted_url", external, "postgres://y")},
      ${encrypt("databases", "encrypted_reader_url", external, "postgres://z")}, ${external}, 5432)`;
  return { baseId: base.id, databaseId: base.database.id };
}

/** Every encrypted value of the control plane, decrypted with these keys; its location if that fails. */
async function openAll(columns: EncryptedColumn[], ...keys: [string, ...string[]]): Promise<string[]> {
  const box = createSecretBox(keys);
  const { db } = control.ctx;
  const opened: string[] = [];
  for (const column of columns) {
    const rows = await db<{ id: string; encrypted: string }[]>`
      select ${db(column.key)} as id, ${db(column.column)} as encrypted from ${db(column.table)}
      where ${db(column.column)} is not null order by 1`;
    if (rows.length === 0) throw new Error(`No test plants anything in ${column.table}.${column.column}`);
    opened.push(...rows.map(({ id, encrypted }) => box.decrypt(encrypted, contextOf(column, id))));
  }
  return opened;
}

test("a rotation covers every encrypted column: each one of the schema is filled here, and encrypted again", async () => {
  await plant();
  const columns = await encryptedColumns(control.ctx);
  const old = control.ctx.config.secretKey!;
  const before = await openAll(columns, old);
  const key = newKey();
  const rotated = await rotateEncryption(startedWith(key, old));
  expect(rotated).toEqual({ reencrypted: before.length, unreadable: 0 });
  expect(await openAll(columns, key)).toEqual(before);
  expect(await rotateEncryption(startedWith(key, old))).toEqual({ reencrypted: 0, unreadable: 0 });
  // Restored, for the other tests.
  await rotateEncryption(startedWith(old, key));
});

test("processes with the old, both and the new key work at the same time through every step of a rotation", async () => {
  const { baseId, databaseId } = await plant();
  const old = control.ctx.config.secretKey!;
  const key = newKey();
  const [before, ready, turned, after] = [
    startedWith(old),
    startedWith(old, key),
    startedWith(key, old),
    startedWith(key),
  ];
  const works = async (...processes: TestControl["ctx"][]) => {
    for (const ctx of processes) {
      expect(await openApiKey(ctx, { id: baseId })).toBe(GOOD_KEY);
      await replicaTarget(ctx, { database: { id: databaseId, name: "", schema: "", host: "", port: 0 } });
      expect((await databaseCredentials(ctx, await getDatabase(ctx.db, databaseId))).password).toMatch(
        /^.{32}$/,
      );
    }
  };
  await works(before, ready);
  // Some processes have been restarted with the new key, others not yet: each reads what the others write.
  const account = await control.addAccount(`${crypto.randomUUID()}@example.org`);
  const byTurned = await createDraft(turned, account.id, "airtable");
  await setDraftKey(turned, byTurned, GOOD_KEY);
  const [row] = await control.ctx
    .db`select encrypted_api_key as encrypted from base_drafts where id = ${byTurned.id}`;
  expect(ready.secrets.decrypt(row!.encrypted, `base_drafts.api_key:${byTurned.id}`)).toBe(GOOD_KEY);
  await works(ready, turned);
  await rotateEncryption(turned);
  await works(ready, turned, after);
  expect(await examineEncryption(after)).toMatchObject({ previous: 0, unreadable: 0 });
  await rotateEncryption(startedWith(old, key));
});

test("a value that changes while it is encrypted again keeps the change", async () => {
  const { baseId } = await plant();
  const old = control.ctx.config.secretKey!;
  const key = newKey();
  const turned = startedWith(key, old);
  const changed = turned.secrets.encrypt("patChanged.1", `bases.api_key:${baseId}`);
  const secrets = {
    ...turned.secrets,
    // A user saves another key between the read and the write.
    encrypt(plain: string, context: SecretContext) {
      if (context === `bases.api_key:${baseId}`) pending.push(save());
      return turned.secrets.encrypt(plain, context);
    },
  };
  const pending: Promise<unknown>[] = [];
  const save = async () =>
    control.ctx.db`update bases set encrypted_api_key = ${changed} where id = ${baseId}`;
  // One connection, so that the user's statement is first.
  await rotateEncryption({ ...turned, secrets });
  await Promise.all(pending);
  expect(await openApiKey(turned, { id: baseId })).toBe("patChanged.1");
  await rotateEncryption(startedWith(old, key));
});

test("the command reports unreadable values, and doctor reports when the old key can be removed", async () => {
  await plant();
  const old = control.ctx.config.secretKey!;
  const key = newKey();
  const operate = async (words: string[], env: Record<string, string>) => {
    const given = { ...operatorEnv(control.ctx.config), REPLICA_URL: inject("clusterUrl"), ...env };
    const { code, out } = await operateHere([...words, "--json"], given);
    return { code, answer: JSON.parse(out) };
  };
  const secretsOf = async (env: Record<string, string>) =>
    (await operate(["doctor"], env)).answer.find((finding: { check: string }) => finding.check === "secrets");
  const rotating = { SECRET_KEY: key, SECRET_KEY_PREVIOUS: old };
  expect(await secretsOf({ SECRET_KEY: old })).toMatchObject({ status: "ok" });
  expect(await secretsOf(rotating)).toMatchObject({
    status: "warning",
    remedy: expect.stringContaining("secrets rotate"),
  });
  expect(await operate(["secrets", "rotate"], { SECRET_KEY: key })).toMatchObject({
    code: 1,
    answer: { reencrypted: 0 },
  });
  const rotated = await operate(["secrets", "rotate"], rotating);
  expect(rotated).toMatchObject({ code: 0, answer: { unreadable: 0 } });
  expect(rotated.answer.reencrypted).toBeGreaterThan(4);
  expect(await secretsOf(rotating)).toMatchObject({
    status: "ok",
    message: expect.stringContaining("SECRET_KEY_PREVIOUS can be removed"),
  });
  await rotateEncryption(startedWith(old, key));
});

test("users stay signed in through a rotation, also once the old key is removed", async () => {
  const email = `${crypto.randomUUID()}@example.org`;
  await control.addAccount(email);
  const old = control.ctx.config.secretKey!;
  const key = newKey();
  const before = consoleClient(consoleApp(startedWith(old)));
  expect((await before.post("/sign-in", { email, password: PASSWORD })).status).toBe(303);
  const stolen = new Map(before.cookies);

  const signedIn = async (keys: [string, ...string[]], cookies: Map<string, string>) => {
    const client = consoleClient(consoleApp(startedWith(...keys)));
    for (const [name, value] of cookies) client.cookies.set(name, value);
    const { status } = await client.get("/account");
    return { isIn: status === 200, cookies: client.cookies };
  };
  const turned = await signedIn([key, old], before.cookies);
  expect(turned.isIn).toBe(true);
  expect((await signedIn([key], turned.cookies)).isIn).toBe(true);
  // A console that has not been restarted yet.
  expect((await signedIn([old, key], turned.cookies)).isIn).toBe(true);
  expect((await signedIn([key], stolen)).isIn).toBe(false);
  for (const [name, value] of turned.cookies)
    stolen.set(name, value.replace(/\.[^.]+$/, `.${"A".repeat(43)}%3D`));
  expect((await signedIn([key, old], stolen)).isIn).toBe(false);
});

test("a reset link cannot be read in the control plane", async () => {
  const { createAuth } = await import("../../../apps/console/auth/auth");
  const email = `${crypto.randomUUID()}@example.org`;
  await control.addAccount(email);
  const mails: string[] = [];
  const auth = createAuth(control.ctx, {
    isConfigured: true,
    send: async ({ text }) => void mails.push(text),
  });
  const client = consoleClient(consoleApp(control.ctx, auth));
  await client.post("/forgot-password", { email });
  await expect.poll(() => mails.length).toBe(1);
  const token = new URL(/https?:\S+/.exec(mails[0]!)![0]).searchParams.get("token")!;
  const rows = await control.ctx.db<{ row: string }[]>`select v::text as row from verifications as v`;
  expect(rows.filter(({ row }) => row.includes(token))).toEqual([]);
  expect((await client.post("/reset-password", { token, password: "another one" })).location).toContain(
    "/sign-in",
  );
});

test("an API token is found by its hash alone: what the control plane has of it opens nothing", async () => {
  const { token, id } = await control.addAccount(`${crypto.randomUUID()}@example.org`);
  const [row] = await control.ctx.db<{ token_hash: string; row: string }[]>`
    select token_hash, t::text as row from api_tokens as t where account_id = ${id}`;
  expect(row!.token_hash).toBe(createHash("sha256").update(token).digest("hex"));
  expect(row!.row).not.toContain(token.slice(3));
  const status = async (bearer: string) => {
    const headers = { authorization: `Bearer ${bearer}` };
    const request = new Request("http://console/api/v1/bases", { headers });
    return (await consoleApp(control.ctx).handle(request)).status;
  };
  expect(await status(token)).toBe(200);
  for (const wrong of [row!.token_hash, `bt_${row!.token_hash.slice(0, 43)}`, `${token.slice(0, -1)}~`])
    expect([wrong, await status(wrong)]).toEqual([wrong, 401]);
});
