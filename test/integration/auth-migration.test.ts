import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pino from "pino";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { createAuth } from "../../apps/console/auth/auth";
import { readConfig } from "../../core/config";
import { authenticate, hashPassword } from "../../core/control";
import { hashToken, newToken } from "../../core/control/tokens";
import { freshDatabase, type TestDatabase } from "../support/database";

let database: TestDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

const migrate = (name: string) => {
  const text = readFileSync(new URL(`../../sql/control/${name}.sql`, import.meta.url), "utf8");
  return database.sql.unsafe(text.split("-- Down Migration")[0]!);
};

test("an account of before signs in with its old password, and its tokens go on working", async () => {
  const { sql } = database;
  const token = newToken();
  await migrate("0001_accounts");
  await migrate("0002_bases");
  await sql`
    insert into accounts (id, email, password_hash, is_operator)
    values ('acc_0000000000000000000a', 'Ada@Example.org', ${await hashPassword("an old password")}, true)`;
  await sql`
    insert into api_tokens (id, account_id, name, token_hash)
    values ('tok_0000000000000000000a', 'acc_0000000000000000000a', 'first', ${hashToken(token)})`;
  await migrate("0007_auth");
  // Signing in counts attempts.
  await migrate("0011_audit");

  const config = readConfig({
    DATABASE_URL: database.url,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: randomBytes(32).toString("base64"),
  });
  const auth = createAuth({ config, db: sql, log: pino({ level: "silent" }) });
  const request = new Request("http://localhost:3000/sign-in", { method: "POST" });
  const signIn = (password: string) =>
    auth.signIn(request, { email: "ADA@example.org", password, next: "/" });
  expect(await signIn("another password")).toMatchObject({ ok: false, reason: "wrong_password" });
  const signedIn = await signIn("an old password");
  if (!signedIn.ok) throw new Error(signedIn.message);
  const cookie = signedIn.cookies.getSetCookie()[0]!.split(";")[0]!;
  const { viewer } = await auth.viewer(new Request("http://localhost:3000/", { headers: { cookie } }));
  expect(viewer?.account).toEqual({
    id: "acc_0000000000000000000a",
    email: "Ada@Example.org",
    isOperator: true,
    role: "owner",
  });
  expect(await authenticate(sql, `Bearer ${token}`)).toMatchObject({ id: "acc_0000000000000000000a" });
});
