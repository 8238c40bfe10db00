/**
 * A whole service whose control plane or replicas are on a primary with a standby, behind an endpoint that moves at a
 * failover.
 */
import postgres from "postgres";
import { startProxy } from "../../apps/proxy/start";
import { createToken } from "../../core/control/accounts";
import type { Base } from "../../core/control/bases";
import { closeContext, createContext } from "../../core/process";
import { compareToSource, type SourceDump } from "./compare-to-source";
import type { Fleet } from "./fleet";
import { connectLive, startLiveFleet } from "./live-fleet";
import { type PostgresPair, postgresPair } from "./postgres-pair";
import { readerOf } from "./replica";

const TABLE = "Tasks";
/** On a busy machine, ms. */
const FIRST_SYNC_MS = 180_000;

/** The parts of the console's answers that tests read. */
interface BaseJson {
  indicator?: { color: string };
}

export interface FailoverScene extends AsyncDisposable {
  pair: PostgresPair;
  fleet: Fleet;
  base: Base;
  reader: postgres.Sql;
  /** Reads SQL with other credentials from now on. */
  readAs(url: string): void;
  /** The differences between SQL and the source in both directions, as text. */
  differences(): Promise<string[]>;
  /** A user adds a record in the source. */
  add(name: string): void;
  /** Returns whether SQL has such a record. */
  has(name: string): Promise<boolean>;
  /** A client adds a record through the proxy. @returns its status, and what the answer says about SQL */
  write(name: string): Promise<{ status: number; sql: string | null }>;
  /** The statuses of `GET /readyz` of the worker, the proxy and the console. */
  readiness(): Promise<number[]>;
  /** Calls the console's management API. */
  api(method: "GET" | "PATCH", settings?: object): Promise<{ status: number; json: BaseJson }>;
}

/**
 * @param options.which what the pair holds
 * @param options.other the server of the other part: its URL; the test server unless given
 */
export async function failoverScene(options: {
  which: "control" | "replica";
  isSynchronous: boolean;
  other?: string;
}): Promise<FailoverScene> {
  await using releases = new AsyncDisposableStack();
  const pair = releases.use(await postgresPair(options));
  const urls =
    options.which === "control"
      ? { control: pair.url, replica: options.other }
      : { control: options.other, replica: pair.url };
  const fleet = releases.use(
    await startLiveFleet({
      ...(urls.control ? { databaseUrl: await emptyDatabase(urls.control) } : {}),
      env: urls.replica ? { REPLICA_URL: urls.replica } : {},
      sandbox: { settings: { rateLimitOff: true } },
    }),
  );
  const proxyContext = createContext(fleet.ctx.config, "proxy");
  releases.defer(() => closeContext(proxyContext));
  const proxy = await startProxy(proxyContext, { port: 0 });
  releases.defer(() => proxy.stop());
  const { control } = fleet.sandbox;
  const records = Array.from({ length: 20 }, (_, index) => ({ fields: { Name: `Task ${index}` } }));
  const fields = [{ name: "Name", type: "singleLineText" }];
  const sourceBaseId = control.createBase({ tables: [{ name: TABLE, fields, records }] });
  const base = await connectLive(fleet, sourceBaseId, FIRST_SYNC_MS);
  let reader = await fleet.reader(base);
  const token = await createToken(fleet.ctx.db, base.accountId, "failover");
  const consoleUrl = fleet.ctx.config.consoleUrl!;
  const processes = [
    `http://127.0.0.1:${fleet.workers[0]!.port}`,
    `http://127.0.0.1:${proxy.port}`,
    consoleUrl,
  ];
  const kept = releases.move();
  return {
    pair,
    fleet,
    base,
    get reader() {
      return reader;
    },
    readAs(url) {
      const other = readerOf(url);
      kept.defer(() => other.end({ timeout: 1 }));
      reader = other;
    },
    differences: async () =>
      (await compareToSource(reader, control.dump(sourceBaseId) as unknown as SourceDump)).differences,
    add: (name) => void control.createRecords(sourceBaseId, TABLE, [{ fields: { Name: name } }]),
    has: async (name) => (await reader`select from tasks where name = ${name}`).length > 0,
    async write(name) {
      const answer = await fetch(`${processes[1]}/api.airtable.com/v0/${sourceBaseId}/${TABLE}`, {
        method: "POST",
        headers: { authorization: `Bearer ${fleet.sandbox.key}`, "content-type": "application/json" },
        body: JSON.stringify({ fields: { Name: name } }),
      });
      await answer.text();
      return { status: answer.status, sql: answer.headers.get("x-basetide-sql") };
    },
    readiness: () => Promise.all(processes.map(async (url) => (await fetch(`${url}/readyz`)).status)),
    async api(method, settings) {
      const answer = await fetch(`${consoleUrl}/api/v1/bases/${base.id}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(settings ? { body: JSON.stringify(settings) } : {}),
      });
      return { status: answer.status, json: (await answer.json()) as BaseJson };
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** @returns the URL of a new database on the server */
async function emptyDatabase(serverUrl: string): Promise<string> {
  const admin = postgres(serverUrl, { max: 1 });
  await admin`create database control`;
  await admin.end();
  return Object.assign(new URL(serverUrl), { pathname: "/control" }).href;
}
