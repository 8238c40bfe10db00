/** Connections of `pg`, for pg-boss and the migrations: made and set up as those of postgres.js are. */
import type pg from "pg";
import { liveSocket, offersTls, tlsOptions } from "../net";
import type { PostgresUrl } from "../postgres-url";
import { ownServer } from "./client";
import { WATCHED_BY_SERVER } from "./options";
import { primaryClients } from "./pg-primary";
import { prepareSession } from "./session";
import { CONTROL_SETTINGS, SETTINGS_WHERE_DIFFERENT } from "./session-settings";

/** Options of a pool or a client. `onConnect` is the pool's: a client of its own is made by `connectPg`. */
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
    stream: liveSocket,
    Client: primaryClients(),
    onConnect: (client: pg.ClientBase) => prepare(client, settings),
  };
}

/** A connection that is ready. @throws what the server or the way to it does */
export async function connectPg(url: string, applicationName: string): Promise<pg.Client> {
  const { onConnect, Client, ...options } = await pgOptions(url);
  const client = new Client({ ...options, application_name: applicationName });
  // One that is lost while nothing is asked: the next query tells.
  client.on("error", () => {});
  await client.connect();
  try {
    await onConnect(client);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

async function prepare(client: pg.ClientBase, settings: Record<string, string | number>): Promise<void> {
  const { processID: pid } = client as unknown as { processID: number };
  const texts = Object.entries(settings).map(([name, value]) => [name, String(value)]);
  const run = async (text: string) => (await client.query(text)).rows;
  await prepareSession(run, pid, Object.fromEntries(texts), SETTINGS_WHERE_DIFFERENT);
}

/** `pg` cannot go on without TLS on the connection on which it asked for it. */
async function sslOf(parsed: PostgresUrl) {
  const isOn = parsed.sslMode !== "disable" && (parsed.sslMode !== "prefer" || (await offersTls(parsed)));
  return isOn ? tlsOptions(parsed) : false;
}
