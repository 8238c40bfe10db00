/** Connections of `pg`, for pg-boss and the migrations: opened and set up like those of postgres.js. */
import type pg from "pg";
import { withTimeout } from "../async";
import { liveSocket, offersTls, tlsOptions } from "../net";
import type { PostgresUrl } from "../postgres-url";
import { SECOND_MS } from "../time-units";
import { ownServer } from "./client";
import { CONTROL_CONNECT_SECONDS, IDLE_TIMEOUT_SECONDS } from "./control-database";
import { WATCHED_BY_SERVER } from "./options";
import { primaryClients } from "./pg-primary";
import { prepareSession } from "./session";
import { CONTROL_SETTINGS, SETTINGS_WHERE_DIFFERENT } from "./session-settings";

/** How long a pool or a connection that is closed waits for its statements. */
export const CLOSE_SECONDS = 5;

/** Options of a pool or a client. `onConnect` is for pools; `connectPg` creates a single client. */
export async function pgOptions(url: string) {
  const parsed = ownServer(url);
  const { host, port, user, password, database, options } = parsed;
  const settings = { ...parsed.settings, ...CONTROL_SETTINGS, ...WATCHED_BY_SERVER };
  return {
    host,
    port,
    ...(user === "" ? {} : { user }),
    ...(database === "" ? {} : { database }),
    password,
    ssl: await sslOf(parsed),
    ...(parsed.isDirectTls ? { sslnegotiation: "direct" as const } : {}),
    ...(options === undefined ? {} : { options }),
    // Otherwise ten seconds, after which each poll of pg-boss would log in again.
    idleTimeoutMillis: IDLE_TIMEOUT_SECONDS * 1000,
    stream: liveSocket,
    Client: primaryClients(),
    onConnect: (client: pg.ClientBase) => prepare(client, settings),
  };
}

/** Returns a connection that is ready. @throws the server's or the connection's error */
export async function connectPg(url: string, applicationName: string): Promise<pg.Client> {
  const { onConnect, Client, ...options } = await pgOptions(url);
  const client = new Client({
    ...options,
    application_name: applicationName,
    connectionTimeoutMillis: CONTROL_CONNECT_SECONDS * SECOND_MS,
  });
  // If the connection is lost while idle, the next query reports it.
  client.on("error", () => {});
  await client.connect();
  try {
    await onConnect(client);
    return client;
  } catch (error) {
    await closePg(client);
    throw error;
  }
}

/** Closes a connection, without waiting for long for a server that no longer answers. */
export async function closePg(client: pg.Client): Promise<void> {
  await withTimeout(CLOSE_SECONDS * SECOND_MS, () => {}, client.end());
}

async function prepare(client: pg.ClientBase, settings: Record<string, string | number>): Promise<void> {
  const { processID: pid } = client as unknown as { processID: number };
  const texts = Object.entries(settings).map(([name, value]) => [name, String(value)]);
  const run = async (text: string) => (await client.query(text)).rows;
  await prepareSession(run, pid, Object.fromEntries(texts), SETTINGS_WHERE_DIFFERENT);
}

/** `pg` cannot fall back to no TLS on the connection on which it requested TLS. */
async function sslOf(parsed: PostgresUrl) {
  const isOn = parsed.sslMode !== "disable" && (parsed.sslMode !== "prefer" || (await offersTls(parsed)));
  return isOn ? tlsOptions(parsed) : false;
}
