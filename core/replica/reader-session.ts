/**
 * Runs queries on a base's database for the console, as the role that it reads with.
 *
 * The role's grants limit what a query reads. Time, bytes and cancellation are limited from outside of the session,
 * because a query may change every setting of its own session: when one is exceeded, the server's process is ended.
 */
import postgres from "postgres";
import { BasetideError, isBasetideError } from "../errors";
import type { ServerUrl } from "../external";
import { CONNECT_SECONDS, isServerFailure, type NewConnection, WATCHED_BY_SERVER } from "../postgres";
import { type ReplicaSql, replicaError, type Schemas, schemasOf } from "./connection";
import { withAdmin } from "./provision";
import { serverPool } from "./server-pools";

export interface ReaderTarget {
  /** The database, with the role that reads. */
  url: ServerUrl;
  schema: string;
  /** With the right to end the role's sessions. */
  admin: ServerUrl;
  /** The role may write, because a customer hosts the database: only statements that cannot write may be run. */
  mayWrite: boolean;
}

export interface ReaderLimits {
  /** Of the whole session, including its login, ms. */
  timeoutMs: number;
  /** Sent by the server in the whole session. */
  bytes: number;
  /** Ends the session, whatever it is doing. */
  signal?: AbortSignal | undefined;
}

/** One connection, in a read-only transaction. */
export interface ReaderSession extends Schemas {
  sql: ReplicaSql;
  /** Ends the transaction, whatever became of it, and begins another, which can no longer be made writable. */
  begin(): Promise<void>;
}

/** The server's own time limit is this much shorter than ours, so that its clear error arrives first, ms. */
const HEAD_START_MS = 1000;
const TIMEOUT_STATE = "57014";
const FULL_STATE = "53300";

/** `transaction_read_only` cannot be turned off once the transaction has a snapshot, which the last statement takes. */
const BEGIN = "rollback; begin transaction isolation level read committed read only; select 1";

/**
 * Logs in, begins a read-only transaction, runs `work`, and logs out.
 *
 * @throws BasetideError `query_failed` if the server rejects a statement, with `sqlState` and `position` (1 is the
 *   first character); `query_stopped` if a limit is exceeded or `signal` aborts; `replica_unavailable`
 */
export async function withReader<T>(
  target: ReaderTarget,
  limits: ReaderLimits,
  work: (session: ReaderSession) => Promise<T>,
): Promise<T> {
  const stop = new Stop(target.admin);
  const { sql } = serverPool(target.url, poolOptions(target, limits), {
    use: "query",
    patienceMs: 0,
    onSession: (_, { socket }) => countBytes(socket, limits.bytes, stop),
  });
  const seconds = Math.round(limits.timeoutMs / 1000);
  const timer = setTimeout(() => stop.now(`it took longer than ${seconds} s`), limits.timeoutMs);
  const cancelled = () => stop.now("it was cancelled");
  limits.signal?.addEventListener("abort", cancelled);
  if (limits.signal?.aborted) cancelled();
  try {
    const begin = async () => void (await sql.unsafe(BEGIN));
    const session = async () => {
      const [own] = await sql<[BackendId]>`
        select pid, backend_start::text as since from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())`;
      stop.reached(own);
      await begin();
      return work({ ...schemasOf(target.schema), sql, begin });
    };
    return await Promise.race([session(), stop.stopped]);
  } catch (error) {
    throw stop.reason ?? readerError(error, seconds);
  } finally {
    clearTimeout(timer);
    limits.signal?.removeEventListener("abort", cancelled);
    void sql.end({ timeout: stop.reason ? 0 : 1 });
  }
}

function poolOptions({ schema }: ReaderTarget, { timeoutMs }: ReaderLimits) {
  return {
    max: 1,
    connect_timeout: CONNECT_SECONDS,
    // All that is shown is text, and the arrays of a database's own types would cost a query.
    fetch_types: false,
    prepare: false,
    onnotice: () => {},
    connection: {
      application_name: "basetide console",
      search_path: `${schemasOf(schema).schema}, public`,
      statement_timeout: Math.max(100, timeoutMs - HEAD_START_MS),
      lock_timeout: Math.max(100, timeoutMs - HEAD_START_MS),
      ...WATCHED_BY_SERVER,
    },
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
  };
}

interface BackendId {
  pid: number;
  since: string;
}

/** Ends a session once, for the first reason. */
class Stop {
  reason: BasetideError | undefined;
  readonly #admin: ServerUrl;
  readonly #gate = Promise.withResolvers<never>();
  #backend: BackendId | undefined;

  constructor(admin: ServerUrl) {
    this.#admin = admin;
    this.#gate.promise.catch(() => {});
  }

  /** Rejects when the session is ended. */
  get stopped(): Promise<never> {
    return this.#gate.promise;
  }

  reached(backend: BackendId): void {
    this.#backend = backend;
    if (this.reason) this.#end();
  }

  now(why: string): void {
    if (this.reason) return;
    this.reason = new BasetideError("query_stopped", `The query was stopped: ${why}`);
    this.#gate.reject(this.reason);
    if (this.#backend) this.#end();
  }

  /** A process that computes does not notice that its client is gone. If this fails, the watchdog ends the session. */
  #end(): void {
    const { pid, since } = this.#backend!;
    withAdmin(
      this.#admin,
      // The process's number alone may belong to another session by now. As text: the driver's times have milliseconds.
      (admin) => admin`
        with own as materialized (
          select pid from pg_catalog.pg_stat_activity where pid = ${pid} and backend_start = ${since}::text::timestamptz)
        select pg_catalog.pg_terminate_backend(pid) from own`,
    ).catch(() => {});
  }
}

function countBytes(socket: NewConnection["socket"], most: number, stop: Stop): void {
  let bytes = 0;
  const stream = socket as NodeJS.ReadableStream & { destroy(): void };
  stream.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= most) return;
    stop.now(`its result has more than ${Math.round(most / 1e6)} MB`);
    stream.destroy();
  });
}

function readerError(error: unknown, seconds: number): BasetideError {
  if (isBasetideError(error)) return error;
  const { code, message, position } = error as postgres.PostgresError;
  if (code === TIMEOUT_STATE) {
    return new BasetideError("query_stopped", `The query was stopped: it took longer than ${seconds} s`);
  }
  if (code === FULL_STATE) {
    return new BasetideError("replica_unavailable", `No connection to the database is free: ${message}`);
  }
  // A demoted server rejects writes with the same code as a read-only transaction.
  const isOfStatement =
    error instanceof postgres.PostgresError && (code === "25006" || !isServerFailure(error));
  if (!isOfStatement) return replicaError(error);
  const details = { sqlState: code, position: position === undefined ? undefined : Number(position) };
  return new BasetideError("query_failed", message, { cause: error, details });
}
