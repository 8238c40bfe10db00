/**
 * What SQL writes need, as processes that can be killed at any point of a call: a proxy with its endpoint, the server of
 * the replicas, and a source behind a relay that stops at each write.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import postgres from "postgres";
import { createSqlUserOf, getBase, updateSettings } from "../../../core/control/bases";
import { getDatabase, showSqlUserCredentials } from "../../../core/control/placement";
import { type FaultProxy, faultProxy } from "../../support/fault-proxy";
import { freePort } from "../../support/free-port";
import { connectLive, startLiveFleet } from "../../support/live-fleet";
import { type MortalPostgres, mortalPostgres } from "../../support/mortal-postgres";
import { type Supervised, supervise } from "../../support/supervised";
import { createTasksBase } from "../../support/tasks-base";

/** `received`: the source has done nothing yet. `done`: it has, and the proxy has no answer. */
export type CallPoint = "received" | "done";

/** A write call that the relay holds. */
export interface HeldCall {
  sourceBaseId: string;
  /** The proxy gets no answer, and at the point `received` the source no request. */
  drop(): void;
}

export interface WritableBase {
  id: string;
  sourceBaseId: string;
  /** The client's connection passes it. */
  line: FaultProxy;
  url: string;
}

export type KillScene = Awaited<ReturnType<typeof startKillScene>>;

export async function startKillScene(options: {
  bases: number;
  upstreamTimeoutMs: number;
  /** Writes are queued. */
  isQueued: boolean;
}) {
  await using releases = new AsyncDisposableStack();
  const replica = releases.use(await mortalPostgres());
  const env = {
    REPLICA_URL: replica.url,
    WRITE_PORT: String(await freePort()),
    UPSTREAM_TIMEOUT_MS: String(options.upstreamTimeoutMs),
  };
  const fleet = releases.use(
    await startLiveFleet({ env, leavesBases: true, sandbox: { settings: { rateLimitOff: true } } }),
  );
  const relay = await startRelay(fleet.sandbox.url);
  releases.defer(() => relay.stop());
  const { config } = fleet.ctx;
  const proxy = releases.use(
    supervise(
      "proxy",
      "proxy",
      await freePort(),
      {
        ...env,
        DATABASE_URL: config.databaseUrl!,
        SECRET_KEY: config.secretKey!,
        DATA_DIR: config.dataDir,
        UPSTREAMS: `api.airtable.com=${relay.url},content.airtable.com=${relay.url}`,
        LOG_LEVEL: "info",
      },
      process.env.KILLS_LOG,
    ),
  );
  await proxy.untilReady(30_000);
  const bases: WritableBase[] = [];
  for (let nth = 0; nth < options.bases; nth++) {
    const sourceBaseId = createTasksBase(fleet.sandbox.control, 0);
    const live = await connectLive(fleet, sourceBaseId);
    const ctx = { ...fleet.ctx, actor: { kind: "system", name: "kills" } as const };
    await updateSettings(ctx, live, { sqlWrites: true, sqlWritesQueued: options.isQueued });
    const base = await getBase(fleet.ctx.db, live.id);
    const user = await createSqlUserOf(ctx, base, "writer", { tables: ["tasks"] });
    const credentials = await showSqlUserCredentials(
      ctx,
      await getDatabase(fleet.ctx.db, base.database.id),
      user,
    );
    const { hostname, port } = new URL(replica.url);
    const line = releases.use(
      await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false }),
    );
    bases.push({ id: base.id, sourceBaseId, line, url: line.over(credentials.url) });
  }
  /** Runs a statement in the base's database, as a superuser. */
  async function ask<Row extends object>({ url }: WritableBase, statement: string): Promise<Row[]> {
    const own = new URL(replica.url);
    own.pathname = new URL(url).pathname;
    const sql = postgres(own.href, { max: 1, onnotice: () => {}, connect_timeout: 10 });
    try {
      return [...(await sql.unsafe<Row[]>(statement))];
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
  const kept = releases.move();
  return {
    isQueued: options.isQueued,
    ask,
    fleet,
    replica,
    proxy,
    relay,
    bases,
    /** Closes the connections of all clients and services to the replicas, as a server does that an administrator restarts. */
    async terminateBackends() {
      const sql = postgres(replica.url, { max: 1, onnotice: () => {} });
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'`.catch(
        () => {},
      );
      await sql.end({ timeout: 1 });
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  } satisfies { replica: MortalPostgres; proxy: Supervised } & Record<string, unknown> & AsyncDisposable;
}

/** Forwards requests to the source; a test can hold the next write. */
async function startRelay(target: string) {
  let armed: { point: CallPoint; found(call: HeldCall): void; isOver: Promise<void> } | undefined;
  const server = http.createServer((request, response) => {
    void relay(request, response).catch(() => response.destroy());
  });

  async function relay(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const method = request.method!;
    const forward = () =>
      fetch(target + request.url, {
        method,
        headers: { authorization: request.headers.authorization!, "content-type": "application/json" },
        body: method === "GET" || method === "DELETE" ? undefined : Buffer.concat(chunks),
      });
    const [, sourceBaseId] = /^\/v0\/(app\w+)\/tbl/.exec(request.url!) ?? [];
    const held = method !== "GET" && sourceBaseId !== undefined ? armed : undefined;
    let answer: Response | undefined;
    if (held) {
      armed = undefined;
      if (held.point === "done") answer = await forward();
      let isDropped = false;
      held.found({
        sourceBaseId: sourceBaseId!,
        drop: () => {
          isDropped = true;
        },
      });
      await held.isOver;
      if (isDropped) return void response.destroy();
    }
    answer ??= await forward();
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /**
     * Holds the next write while `work` runs.
     *
     * @returns false if there was none in `patienceMs`
     */
    async atNextWrite(
      point: CallPoint,
      patienceMs: number,
      work: (call: HeldCall) => Promise<void>,
    ): Promise<boolean> {
      const over = Promise.withResolvers<void>();
      const call = await new Promise<HeldCall | undefined>((resolve) => {
        armed = { point, found: resolve, isOver: over.promise };
        setTimeout(() => resolve(undefined), patienceMs);
      });
      armed = undefined;
      try {
        if (call) await work(call);
      } finally {
        over.resolve();
      }
      return call !== undefined;
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
