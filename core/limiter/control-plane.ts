/** The control plane's functions of the rate limiter, which all processes share. */
import postgres from "postgres";
import { Turns, withTimeout } from "../async";
import type { Db } from "../context";
import { BasetideError } from "../errors";
import { strictest } from "./limits";
import type { HeartbeatAnswer, HeartbeatCall, Plane } from "./permit-holder";
import type { PermitMessage, Trade } from "./permit-set";

/** Trades at once: a heartbeat must not wait behind those of a thousand bases that start together. */
const MOST_TRADES = 20;

/** How long work that can wait does so while the control plane is unavailable, ms. */
export const PATIENCE_MS = 10_000;

/** A statement of the control plane; postgres.js can cancel it. */
type Statement<T> = PromiseLike<T> & { cancel?: () => void };

export class ControlPlane implements Plane {
  readonly #db: Db;
  readonly #timeoutMs: number;
  readonly #onAway: (isAway: boolean, error?: unknown) => void;
  readonly #turns = new Turns<string>(MOST_TRADES);
  /** The connection of the session, for its messages and heartbeats: no other statement delays these. */
  #line: Db | undefined;
  #isAway = false;

  /** @param onAway called when calls begin to fail (true) and when one succeeds again (false) */
  constructor(db: Db, timeoutMs: number, onAway: (isAway: boolean, error?: unknown) => void) {
    this.#db = db;
    this.#timeoutMs = timeoutMs;
    this.#onAway = onAway;
  }

  /** Runs one statement. @throws BasetideError `control_unavailable` if it fails or times out */
  async call<T>(query: (db: Db) => Statement<T>): Promise<T> {
    try {
      const statement = query(this.#db);
      const late = () => {
        statement.cancel?.();
        throw new Error(`no answer within ${this.#timeoutMs} ms`);
      };
      const result = await withTimeout(this.#timeoutMs, late, statement);
      if (this.#isAway) this.#onAway(false);
      this.#isAway = false;
      return result;
    } catch (error) {
      this.#lose(error);
      throw new BasetideError("control_unavailable", undefined, { cause: error });
    }
  }

  #lose(error?: unknown): void {
    if (!this.#isAway) this.#onAway(true, error);
    this.#isAway = true;
  }

  async heartbeat({ name, session, isProxy, seen, owed, usesOwed }: HeartbeatCall): Promise<HeartbeatAnswer> {
    const [answer] = await this.call(
      () => this.#line!<HeartbeatAnswer[]>`
        select * from quota_heartbeat(${name}, ${session}, ${isProxy}, ${seen}, ${owed}, ${usesOwed},
          ${strictest().requestsPerWindow})`,
    );
    return answer!;
  }

  async trade(session: string, trade: Trade): Promise<PermitMessage> {
    const { key, life, kind, want, most, given, rests, size, throttled, user = null } = trade;
    const query = (db: Db) => db<{ session: string; message: PermitMessage }[]>`
      select session, message, case when session <> ${session} then pg_notify(session, message::text) end
      from quota_trade(${key}, ${session}, ${life}, ${kind}, ${want}, ${most}, ${`{${given}}`}, ${`{${rests}}`}, ${size},
        ${throttled}, ${user})`;
    const rows = await this.#turns.run("", () => this.call(query));
    const own = rows.find((row) => row.session === session);
    if (!own) throw new BasetideError("control_unavailable");
    return own.message;
  }

  async listen(
    session: string,
    onMessage: (message: PermitMessage) => void,
    onLost: () => void,
  ): Promise<() => void> {
    let isOver = false;
    const line = postgres({
      ...this.#db.options,
      max: 1,
      idle_timeout: null,
      max_lifetime: null,
      onnotify: (_channel: string, payload: string) => onMessage(JSON.parse(payload) as PermitMessage),
      // The driver would connect again, and hear nothing.
      onclose: () => {
        if (isOver) return;
        end();
        this.#lose();
        onLost();
      },
    } as unknown as postgres.Options<Record<string, never>>);
    const end = () => {
      isOver = true;
      void line.end({ timeout: 0 });
    };
    try {
      await this.call(() => line.unsafe(`listen ${session}`));
    } catch (error) {
      end();
      throw error;
    }
    this.#line = line;
    return end;
  }

  async leave(session: string): Promise<void> {
    await this.call((db) => db`select quota_end_session(${session})`);
  }
}
