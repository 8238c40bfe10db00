/** A base whose SQL writes are on, and SQL users that may write. */
import postgres from "postgres";
import { onTestFinished, type TestContext } from "vitest";
import { allowWrites, getBase, resolveWrites, updateSettings } from "../../core/control/bases";
import {
  createSqlUser,
  getDatabase,
  type SqlUserWrites,
  showSqlUserCredentials,
} from "../../core/control/placement";
import { freePort } from "./free-port";
import { type ProxyStack, proxyStack } from "./proxy-stack";
import { createTasksBase, recordsInSource } from "./tasks-base";

export async function writeStack(env: Record<string, string> = {}): Promise<ProxyStack> {
  return proxyStack({
    UPSTREAM_TIMEOUT_MS: "1000",
    SCHEMA_POLL_SECONDS: "0.1",
    WRITE_PORT: String(await freePort()),
    ...env,
  });
}

const ACTOR = { kind: "user", id: "usr_test", name: "test@example.com" } as const;

/**
 * A base with records `Task 0` …, synced, whose SQL writes are on.
 *
 * @param options.isQueued they are queued
 * @param options.own URL of a database that the customer hosts
 * @param options.onFinished the `onTestFinished` of a test's context, which a concurrent test must give
 */
export async function writableTasks(
  stack: ProxyStack,
  count = 3,
  {
    isQueued = false,
    own,
    onFinished = onTestFinished,
  }: { isQueued?: boolean; own?: string; onFinished?: TestContext["onTestFinished"] } = {},
) {
  const { control } = stack.sandbox;
  const sourceBaseId = createTasksBase(control, count);
  const replicated = await stack.connect(sourceBaseId, undefined, own);
  await replicated.sync();
  await updateSettings(stack.managed, replicated.base, { sqlWrites: true, sqlWritesQueued: isQueued });
  const base = await getBase(stack.ctx.db, replicated.base.id);
  const ctx = { ...stack.ctx, actor: ACTOR };
  const inSource = (tableName?: string) =>
    recordsInSource(control, sourceBaseId, tableName).map(
      ({ id, fields }) => ({ id, ...fields }) as { id: string } & Record<string, unknown>,
    );
  let users = 0;
  return {
    base,
    replicated,
    sourceBaseId,
    inSource,
    sync: replicated.sync,
    /** Calls of Airtable that changed tasks. */
    calls: () =>
      control.log().filter(({ method, path }) => method !== "GET" && path.startsWith(`/v0/${sourceBaseId}/`)),
    /** Connects as a new SQL user, which may write to these tables. */
    async writer(
      { tables = ["tasks", "people"], mode = "at_commit" }: Partial<SqlUserWrites> = {},
      options: postgres.Options<Record<string, never>> = {},
    ) {
      const database = await getDatabase(stack.ctx.db, base.database.id);
      const user = await createSqlUser(ctx, database, `writer ${++users}`);
      await allowWrites(ctx, base, user, await resolveWrites(ctx, base, { tables, mode }));
      const { url } = await showSqlUserCredentials(ctx, database, user);
      const sql = postgres(url, { max: 1, onnotice: () => {}, ...options });
      onFinished(() => sql.end({ timeout: 1 }));
      return Object.assign(sql, { url, role: user.role });
    },
  };
}
