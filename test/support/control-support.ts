/** Shared by the control plane's tests: a context on a fresh control plane, and a fake source. */

import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Elysia } from "elysia";
import pino from "pino";
import postgres from "postgres";
import { Registry } from "prom-client";
import { afterAll, beforeAll, inject } from "vitest";
import { consoleApp } from "../../apps/console/app";
import { readConfig } from "../../core/config";
import { type Account, createToken } from "../../core/control/accounts";
import { deleteBase, listBases, type ManagementContext } from "../../core/control/bases";
import { ensureDefaultCluster } from "../../core/control/placement";
import { BasetideError } from "../../core/errors";
import { connectControl } from "../../core/postgres";
import { createSecretBox } from "../../core/secrets";
import {
  factsOf,
  type Platform,
  type SourceBase,
  type SourceConnection,
  type SourceTable,
} from "../../core/source";
import { controlDatabase, type TestDatabase } from "./database";
import type { ReplicaServer } from "./replica-server";
import { testAccount } from "./test-account";

export const GOOD_KEY = "patGood.0123456789abcdef";
export const OTHER_KEY = "patOther.0123456789abcdef";
export const SOURCE_BASES: SourceBase[] = [
  { id: "appOne", name: "Inventory", permission: "create" },
  { id: "appTwo", name: "Sales \u0000& more", permission: "read" },
];
/** The tables of each of them. */
export const SOURCE_TABLES: SourceTable[] = [
  {
    id: "tblItems",
    name: "Items",
    primaryFieldId: "fldName",
    fields: [
      { id: "fldName", name: "Name", type: "text", sourceType: "singleLineText" },
      { id: "fldEmail", name: "E-mail", type: "email", sourceType: "email" },
      { id: "fldFiles", name: "Files", type: "attachment", sourceType: "multipleAttachments" },
    ],
    views: [{ id: "viwOpen", name: "Open ones" }],
  },
  {
    id: "tblNotes",
    name: "Notes",
    primaryFieldId: "fldText",
    fields: [{ id: "fldText", name: "Text", type: "text", sourceType: "singleLineText" }],
    views: [],
  },
];

export interface TestControl {
  ctx: ManagementContext;
  /** The server's own URL, as a superuser. */
  serverUrl: string;
  /** Bases for which a sync was requested, in order. */
  requested: string[];
  addAccount(email: string): Promise<Account & { token: string }>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Creates a migrated control plane with the default cluster and no accounts. Remaining bases are deleted at the end.
 *
 * @param given its database; one of the test server unless given
 */
export async function testControl(
  replicaUrl = inject("clusterUrl"),
  given?: Pick<TestDatabase, "url" | typeof Symbol.asyncDispose>,
): Promise<TestControl> {
  const database = given ?? (await controlDatabase());
  const requested: string[] = [];
  const secretKey = randomBytes(32).toString("base64");
  const ctx: ManagementContext = {
    config: readConfig({
      DATABASE_URL: database.url,
      REPLICA_URL: replicaUrl,
      SECRET_KEY: secretKey,
      DATA_DIR: join(tmpdir(), "basetide-unused"),
      LOG_LEVEL: "silent",
    }),
    db: connectControl(database.url, { max: 4 }),
    log: pino({ level: "silent" }),
    secrets: createSecretBox([secretKey]),
    metrics: new Registry(),
    queue: {
      requestSync: async (baseId) => {
        requested.push(baseId);
      },
    },
    platforms: [fakePlatform()],
  };
  await ensureDefaultCluster(ctx);
  return {
    ctx,
    serverUrl: inject("postgresUrl"),
    requested,
    async addAccount(email) {
      const account = await testAccount(ctx.db, { email });
      return { ...account, token: await createToken(ctx.db, account.id, "test") };
    },
    async [Symbol.asyncDispose]() {
      for (const base of await listBases(ctx.db)) await deleteBase(ctx, base);
      await ctx.db.end({ timeout: 1 });
      await database[Symbol.asyncDispose]();
    },
  };
}

/** Knows two keys: one can read both bases, the other only the second. */
function fakePlatform(): Platform {
  const refuse = async (): Promise<never> => {
    throw new Error("not part of this test");
  };
  const connect = (apiKey: string): SourceConnection => ({
    connections: undefined,
    over: () => connect(apiKey),
    changeFeed: undefined,
    async listBases() {
      if (apiKey === GOOD_KEY) return SOURCE_BASES;
      if (apiKey === OTHER_KEY) return SOURCE_BASES.slice(1);
      throw new BasetideError("source_key_refused", "Authentication required");
    },
    getSchema: async () => ({ tables: SOURCE_TABLES }),
    isRecordId: () => true,
    listPage: refuse,
    getRecord: refuse,
    whoami: refuse,
    listByIds: refuse,
  });
  const { id, name, limits, plans, ids, recordUrl, summary } = factsOf("airtable");
  return {
    id,
    name,
    keyHelpUrl: "https://example.com/keys",
    limits,
    plans,
    ids,
    recordUrl,
    summary,
    connect,
  };
}

/** Calls an app's route as a client does; `body` is sent as JSON. */
export function caller(app: Pick<Elysia, "handle">) {
  return async (method: string, path: string, options: { token?: string; body?: unknown } = {}) => {
    const headers = new Headers({ "content-type": "application/json" });
    if (options.token) headers.set("authorization", `Bearer ${options.token}`);
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const response = await app.handle(new Request(`http://console${path}`, { method, headers, body }));
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
}

export type Call = ReturnType<typeof caller>;

/** Connects a base: `appOne`, unless `body` names another. */
export function connectBase(call: Call, token: string, body: Record<string, unknown> = {}) {
  const given = { platform: "airtable", api_key: GOOD_KEY, base_id: "appOne", ...body };
  return call("POST", "/api/v1/bases", { token, body: given });
}

/**
 * The management API on a control plane of its own, for all tests of a file. Replicas are on the same server unless
 * given.
 */
export function managementApi(startReplicas?: () => Promise<ReplicaServer>) {
  let replicas: ReplicaServer | undefined;
  let control: TestControl;
  let call: Call;
  beforeAll(async () => {
    replicas = await startReplicas?.();
    control = await testControl(replicas?.clusterUrl);
    call = caller(consoleApp(control.ctx));
  });
  afterAll(async () => {
    await control?.[Symbol.asyncDispose]();
    await replicas?.[Symbol.asyncDispose]();
  });
  let accounts = 0;
  return {
    get control() {
      return control;
    },
    call: (...asked: Parameters<Call>) => call(...asked),
    newAccount: () => control.addAccount(`person${accounts++}@example.com`),
    connect: (token: string, body?: Record<string, unknown>) => connectBase(call, token, body),
  };
}

/** Opens one connection as the role in `url`. */
export function connectAs(url: string) {
  const db = postgres(url, { max: 1, onnotice: () => {} });
  return { db, [Symbol.asyncDispose]: () => db.end({ timeout: 1 }) };
}

/** Creates a customer's database, and a role of the same name that may connect to it and nothing more. */
export async function ownDatabase(serverUrl: string) {
  const name = `customer_${crypto.randomUUID().slice(0, 8)}`;
  const admin = postgres(serverUrl, { max: 1, onnotice: () => {} });
  await admin.unsafe(`create role ${name} login password 's/e:cret'`);
  await admin.unsafe(`create database ${name}`);
  await admin.unsafe(`grant connect on database ${name} to ${name}`);
  const inner = new URL(serverUrl);
  inner.pathname = `/${name}`;
  const inside = postgres(inner.href, { max: 1, onnotice: () => {} });
  return {
    name,
    /** The server's superuser, outside and inside the database. */
    admin,
    inside,
    url: `postgres://${name}:s%2Fe%3Acret@${inner.host}/${name}`,
    async [Symbol.asyncDispose]() {
      await inside.end({ timeout: 1 });
      await admin.unsafe(`drop database ${name} with (force)`);
      await admin.unsafe(`drop role ${name}`);
      await admin.end({ timeout: 1 });
    },
  };
}
