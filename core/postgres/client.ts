/** The one place that makes a pool of postgres.js: on a server of ours, or on one of a customer's. */
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

/** A connection as the driver hands it to `onsession`, before anything else is done with it. */
export interface NewConnection {
  /** As the login named it. */
  pid: number;
  socket: object;
  /** What the server has said of itself, and the gateway of the connection. */
  parameters: Record<string, string>;
}

/** Bounds the connections of a pool. */
export interface ConnectionGate {
  /** Resolves when one more may be made; each that was let in is ended by the pool's `onclose`, or here. */
  take(): Promise<void>;
  give(): void;
  /**
   * The server has no room for it.
   *
   * @returns whether the statement waits for another try; else it fails
   */
  refused(): boolean;
}

export interface SessionOptions {
  /** Told of each connection that is ready. */
  onSession?: (session: SessionState, connection: NewConnection) => void;
  /** Sets nothing, not even what every session of ours has. */
  isUnset?: boolean;
  gate?: ConnectionGate | undefined;
}

/**
 * A pool that connects when first used: to a server of ours directly, to a customer's through the gateway.
 *
 * `options.connection` are settings of the session: they are applied to each connection after it is made.
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
   * The driver refuses a connection that a standby takes, which then says so at login and costs no round trip, and connects
   * again, by another lookup of the host's name. Where a server stops taking writes while it is connected, all connections
   * of the pool are closed, the one that listens, too: each ends after the statement or transaction that it is at.
   */
  const onservererror = (error: Error) => {
    if (isNotWritable(error)) (pool as unknown as PatchedSql).reset();
  };
  const line = postgresOptions();
  // The types know one host only, the driver takes several; `onsession` and `onservererror` are of our patch.
  const pool = postgres<T>({
    ...line,
    target_session_attrs: "primary",
    ...options,
    ...where,
    ...(gate ? gated(gate, ("socket" in where ? where.socket : line.socket) as MakeSocket) : {}),
    onservererror,
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
  };
}

/** What `patches/` adds to a pool. */
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

/** The gateway encrypts and logs in; the driver is given neither a password nor anything to choose a host by. */
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
