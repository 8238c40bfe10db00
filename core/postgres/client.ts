/** Creates all pools of postgres.js, both for our own servers and for servers of customers. */
import postgres, { type Options, type PostgresType } from "postgres";
import { BasetideError } from "../errors";
import type { ExternalServer, ServerUrl } from "../external";
import { gateway } from "../external";
import { tlsOptions } from "../net";
import { type PostgresUrl, parsePostgresUrl } from "../postgres-url";
import { isNotWritable } from "./errors";
import { postgresOptions } from "./options";
import { prepareSession, type Run, type SessionState } from "./session";
import { SESSION_SETTINGS, SETTINGS_WHERE_DIFFERENT } from "./session-settings";

/** A new connection as the driver passes it to `onsession`, before any other use. */
export interface NewConnection {
  /** The server's process as reported at login. */
  pid: number;
  socket: object;
  /** What the server reported about itself, and the gateway about the connection. */
  parameters: Record<string, string>;
}

/** Limits the connections of a pool. */
interface ConnectionGate {
  /** Resolves when one more connection may be opened. Each is given back by the pool's `onclose`, or here. */
  take(): Promise<void>;
  give(): void;
  /**
   * Called if the server has no free connection.
   *
   * @returns true if the statement waits for another attempt; false if it fails
   */
  refused(): boolean;
}

export interface SessionOptions {
  /** Called for each connection that is ready. */
  onSession?: (session: SessionState, connection: NewConnection) => void;
  /** Applies no settings, not even those of every session. */
  isUnset?: boolean;
  gate?: ConnectionGate | undefined;
}

/**
 * Creates a pool that connects when first used: directly to our own servers, through the gateway to a customer's.
 *
 * `options.connection` are session settings: they are applied to each connection after it is opened.
 */
export function connectServer<T extends Record<string, PostgresType> = Record<never, never>>(
  url: ServerUrl,
  options: Options<T>,
  { onSession, isUnset = false, gate }: SessionOptions = {},
): ReturnType<typeof postgres<T>> {
  const { application_name, ...given } = { ...SESSION_SETTINGS, ...options.connection };
  const { settings: own, startup, ...where } = typeof url === "string" ? directly(url) : throughGateway(url);
  const settings = Object.fromEntries(
    Object.entries(isUnset ? {} : { ...own, ...given }).map(([name, value]) => [name, String(value)]),
  );
  /**
   * The driver refuses a connection to a standby, which reports its state at login without a round trip, and connects
   * again after another lookup of the host's name. If a server stops accepting writes while connected, all connections
   * of the pool are closed, including the listening one: each ends after its current statement or transaction.
   */
  const onservererror = (error: Error) => {
    if (isNotWritable(error)) (pool as unknown as PatchedSql).reset();
  };
  const line = postgresOptions();
  // The types know one host only, the driver accepts several; `onsession` and `onservererror` are from our patch.
  const pool = postgres<T>({
    ...line,
    target_session_attrs: "primary",
    ...options,
    ...where,
    ...(gate ? gated(gate, ("socket" in where ? where.socket : line.socket) as MakeSocket) : {}),
    onservererror,
    // Otherwise, the driver creates a second pool for logical replication with each pool.
    no_subscribe: true,
    connection: { ...(application_name === undefined ? {} : { application_name }), ...startup },
    async onsession(run: Run, connection: NewConnection) {
      const session = await prepareSession(
        run,
        connection.pid,
        settings,
        isUnset ? undefined : SETTINGS_WHERE_DIFFERENT,
      );
      onSession?.(session, connection);
    },
  } as unknown as Options<T>);
  return pool;
}

type MakeSocket = (target: unknown) => unknown;

function gated(gate: ConnectionGate, makeSocket: MakeSocket) {
  return {
    async socket(target: unknown) {
      await gate.take();
      try {
        return await makeSocket(target);
      } catch (error) {
        gate.give();
        throw error;
      }
    },
    onfull: () => gate.refused(),
    // A request to cancel a statement is no session, and nothing reports its end: a place would be lost with each.
    cancel_socket: makeSocket,
  };
}

/** The additions of `patches/` to a pool. */
type PatchedSql = { reset(): void };

/** @throws BasetideError `config_invalid` */
export function ownServer(url: string): PostgresUrl {
  const parsed = parsePostgresUrl(url);
  if (typeof parsed !== "string") return parsed;
  throw new BasetideError("config_invalid", `The URL of a Postgres server ${parsed}`);
}

function directly(url: string) {
  const parsed = ownServer(url);
  const { host, port, user, password, database, sslMode, isDirectTls, options, settings } = parsed;
  return {
    host: [host],
    port: [port],
    ...(user === "" ? {} : { user }),
    ...(database === "" ? {} : { database }),
    pass: password,
    ssl: sslMode === "disable" ? false : sslMode === "prefer" ? sslMode : tlsOptions(parsed),
    sslnegotiation: isDirectTls ? "direct" : null,
    settings,
    startup: options === undefined ? {} : { options },
  };
}

/** The gateway encrypts and logs in; the driver gets no password, and no parameters that choose a host. */
function throughGateway(server: ExternalServer) {
  const { host, port, database, user, options, settings, targetSessionAttrs } = server.address;
  return {
    host: [host],
    port: [port],
    database,
    user,
    pass: "",
    ssl: false,
    socket: () => gateway.connect(server),
    ...(targetSessionAttrs === undefined ? {} : { target_session_attrs: targetSessionAttrs }),
    settings,
    startup: options === undefined ? {} : { options },
  };
}
