/** A control plane whose bases a test makes fail and recover, at times of its own, and whose alerts it can read. */
import pino from "pino";
import { Registry } from "prom-client";
import { startAlerts } from "../../core/alerts";
import { evaluate } from "../../core/alerts/evaluate";
import type { RunningAlerts } from "../../core/alerts/start";
import { createBase, type ManagementContext } from "../../core/control/bases";
import type { ErrorCode } from "../../core/errors";
import { GOOD_KEY, testControl } from "./control-support";
import { startMailbox } from "./mailbox";
import { until } from "./poll";

const MINUTE_MS = 60_000;
/** Only the test runs the check. */
const NEVER_MS = 2 ** 31 - 1;
const RETRIES = { limit: 2, firstSeconds: 1, longestSeconds: 1 };

export type SceneCondition = "well" | "red" | "needs_attention" | "paused";

export interface AlertProcess extends RunningAlerts, AsyncDisposable {
  metrics: Registry;
}

export async function alertScene() {
  const releases = new AsyncDisposableStack();
  const control = await testControl();
  const mailbox = startMailbox();
  releases.defer(() => mailbox.stop());
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const config = { ...control.ctx.config, smtpUrl: mailbox.url, consoleUrl: "https://console.example" };
  const ctx: ManagementContext = { ...control.ctx, config, log };
  const { db } = ctx;
  releases.defer(async () => {
    // Copies have no replica to drop.
    await db`delete from bases where schema_name like 'copy%'`;
    await control[Symbol.asyncDispose]();
  });
  const start = Date.now();
  let minutes = 0;
  const now = () => new Date(start + minutes * MINUTE_MS);
  let copies = 0;

  return {
    ctx,
    control,
    mailbox,
    lines,
    now,
    /** Connects bases for a new account, in the order of their names. */
    async account(names: string[]) {
      const email = `${crypto.randomUUID()}@example.org`;
      const account = await control.addAccount(email);
      const first = await createBase(ctx, account.id, {
        platform: "airtable",
        apiKey: GOOD_KEY,
        sourceBaseId: "appOne",
      });
      const ids = [first.id];
      await db`update bases set name = ${names[0]!} where id = ${first.id}`;
      for (const name of names.slice(1)) {
        const id = first.id.slice(0, -6) + String(copies++).padStart(6, "0");
        ids.push(id);
        await db`
          insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name, state)
          select ${id}, account_id, platform, ${id}, ${name}, encrypted_api_key, database_id, ${`copy${id}`}, state
          from bases where id = ${first.id}`;
      }
      for (const id of ids) await this.turn(id, "well");
      return { ...account, email, ids };
    },
    async addMember(accountId: string) {
      const { email } = await control.addAccount(`${crypto.randomUUID()}@example.org`);
      await db`insert into account_members (account_id, user_id, role)
        select ${accountId}, id, 'editor' from users where email = ${email}`;
      return email;
    },
    /** Puts the base into this condition from now on. */
    async turn(id: string, condition: SceneCondition, error: { code?: ErrorCode; message?: string } = {}) {
      const isWell = condition === "well" || condition === "paused";
      const code = error.code ?? (condition === "red" ? "source_unavailable" : "source_key_refused");
      const message = error.message ?? "The source could not be reached";
      await db`
        update bases set state = ${condition === "well" || condition === "red" ? "active" : condition},
          is_paused = ${condition === "paused"}, sync_kind = 'sweep', sync_duration_ms = 1000,
          error_code = ${isWell ? null : code}, error_message = ${isWell ? null : message},
          error_since = ${isWell ? null : now()}
        where id = ${id}`;
    },
    /** Runs the check now, as a process does; no base lags. */
    async look(other: Pick<ManagementContext, "db" | "config"> = ctx) {
      await db`update bases set sync_started_at = ${now()}, sync_completed_at = ${now()}`;
      return evaluate(other, { everyMs: 0, now: now() });
    },
    async pass(more: number) {
      minutes += more;
    },
    /** Runs the check, and runs it again when the observed condition has lasted long enough. */
    async settle() {
      await this.look();
      await this.pass(2);
      await this.look();
    },
    /** A process that delivers; it runs the check only on request. */
    async process(): Promise<AlertProcess> {
      const metrics = new Registry();
      const running = startAlerts({ ...ctx, metrics }, { everyMs: NEVER_MS, pollMs: 500, retries: RETRIES });
      return { ...running, metrics, [Symbol.asyncDispose]: () => running.stop() };
    },
    /** Delivers what must be sent, and waits until every delivery has ended. */
    async delivered({ look }: RunningAlerts) {
      await look();
      await until(async () => (await db`select from alert_messages where state = 'waiting'`).length === 0, {
        what: "every message has been sent or given up",
        timeoutMs: 30_000,
      });
    },
    alertsOf: (accountId: string) =>
      db<{ kind: string; at: Date; base: string; times: number }[]>`
        select kind, at, base_id as base, (facts ->> 'times')::int as times
        from alerts where account_id = ${accountId} order by id`,
    messagesOf: (accountId: string) =>
      db<{ id: string; subject: string; state: string; error: string | null; attempts: number }[]>`
        select id, subject, state, error, attempts from alert_messages where account_id = ${accountId} order by at, id`,
    [Symbol.asyncDispose]: () => releases.disposeAsync(),
  };
}

export type AlertScene = Awaited<ReturnType<typeof alertScene>>;
