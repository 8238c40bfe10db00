/** `base list|show|pause|resume|resync|rebuild|delete|retry|move`: the bases of all accounts. */
import type { Command } from "commander";
import { moveBase } from "../../core/control/base-move";
import {
  type Base,
  deleteBase,
  getBase,
  listBases,
  type ManagementContext,
  pause,
  requestRebuild,
  requestResync,
  resume,
} from "../../core/control/bases";
import { retryQuarantined } from "../../core/control/jobs";
import { baseJsons } from "../../core/control/status";
import { BasetideError } from "../../core/errors";
import { rateLimiterOf } from "../../core/limiter";
import { formatFacts, formatTable, printResult } from "../../core/terminal";
import { withContext, withManagement } from "./context";

/** Printed after a move. */
const NEW_CREDENTIALS =
  "The host, database, user and password of the base have changed. Its owner finds the new ones under Connect. The old ones no longer work.";

type Change = (ctx: ManagementContext, base: Base) => Promise<Base>;

const changes: Record<string, { description: string; change: Change }> = {
  pause: { description: "stop syncing; the replica stays readable", change: pause },
  resume: { description: "start syncing again", change: resume },
  resync: { description: "sync now, without waiting for the next scheduled sync", change: requestResync },
};

export function addBaseCommands(program: Command): void {
  const base = program.command("base").description("connected bases");
  base
    .command("list")
    .description("list all bases with their state")
    .option("--json", "print JSON", false)
    .action(async (options: { json: boolean }) => {
      const bases = await withContext(async (ctx) => toJsons(ctx, await listBases(ctx.db)));
      printResult(bases, options.json, (all) => formatTable(all.map(toRow), "No bases"));
    });
  base
    .command("show")
    .description("show one base: state, database, settings, last sync")
    .argument("<id>")
    .option("--json", "print JSON", false)
    .action(async (id: string, options: { json: boolean }) => {
      const found = await withContext(async (ctx) => toJson(ctx, await getBase(ctx.db, id)));
      printResult(found, options.json, toText);
    });
  for (const [verb, { description, change }] of Object.entries(changes)) {
    base
      .command(verb)
      .description(description)
      .argument("<id>")
      .option("--json", "print JSON", false)
      .action(async (id: string, options: { json: boolean }) => {
        const changed = await withManagement(async (ctx) =>
          toJson(ctx, await change(ctx, await getBase(ctx.db, id))),
        );
        printResult(changed, options.json, toText);
      });
  }
  base
    .command("rebuild")
    .description("copy a table into a new one: when it has no room for another column, or has lost its key")
    .argument("<id>")
    .argument("<table>", "its name in SQL")
    .option("--force", "also if objects that customers have put on the table are lost", false)
    .option("--json", "print JSON", false)
    .action(async (id: string, name: string, options: { force: boolean; json: boolean }) => {
      const changed = await withManagement(async (ctx) => {
        const found = await getBase(ctx.db, id);
        await requestRebuild(ctx, found, name, options.force);
        return toJson(ctx, await requestResync(ctx, found));
      });
      printResult(changed, options.json, toText);
    });
  base
    .command("delete")
    .description("delete the base and its replica; data in a database that the customer hosts is not deleted")
    .argument("<id>")
    .option(
      "--force",
      "delete even if the deletion is quarantined, without contacting Airtable or a database that the customer hosts",
      false,
    )
    .option("--json", "print JSON", false)
    .action(async (id: string, options: { force: boolean; json: boolean }) => {
      await withManagement(async (ctx) =>
        deleteBase(ctx, await getBase(ctx.db, id), { isForced: options.force }),
      );
      printResult({ id, deleted: true }, options.json, () => `${id} deleted`);
    });
  base
    .command("retry")
    .description("release from quarantine a sync or a move that crashed processes, and retry it")
    .argument("<id>", "the id that `doctor` prints")
    .option("--json", "print JSON", false)
    .action(async (id: string, options: { json: boolean }) => {
      await withManagement(async ({ db, queue }) => {
        if (await retryQuarantined(db, id)) await queue.requestSync(id);
      });
      printResult({ id, retried: true }, options.json, () => `${id} will be retried`);
    });
  base
    .command("move")
    .description("move to another cluster; the replica stays readable, then its credentials change")
    .argument("<id>")
    .requiredOption("--cluster <name>", "the target cluster")
    .option("--json", "print JSON", false)
    .action(async (id: string, options: { cluster: string; json: boolean }) => {
      const stop = new AbortController();
      process.once("SIGINT", () =>
        stop.abort(new BasetideError("sync_stopped", "Stopped; the base has not moved")),
      );
      const moved = await withManagement(async (ctx) =>
        toJson(
          ctx,
          await moveBase({ ...ctx, limiter: rateLimiterOf(ctx) }, id, options.cluster, {
            signal: stop.signal,
          }),
        ),
      );
      const answer = { ...moved, credentials_changed: true };
      printResult(answer, options.json, (facts) => `${toText(facts)}\n\n${NEW_CREDENTIALS}`);
    });
}

async function toJsons({ db }: Pick<ManagementContext, "db">, bases: Base[]) {
  const jsons = await baseJsons(db, bases);
  return bases.map((base, index) => ({ account_id: base.accountId, ...jsons[index]! }));
}

async function toJson(ctx: Pick<ManagementContext, "db">, base: Base) {
  const [json] = await toJsons(ctx, [base]);
  return json!;
}

type BaseJson = Awaited<ReturnType<typeof toJson>>;

function toRow(base: BaseJson) {
  return {
    id: base.id,
    name: base.name,
    state: base.state,
    indicator: base.indicator.color,
    records: base.tables.reduce((sum, { records }) => sum + records, 0),
    duration_ms: base.sync.duration_ms,
    reason: base.indicator.reason,
  };
}

function toText(base: BaseJson): string {
  const { database, settings, sync } = base;
  const isOn = Object.entries(settings).filter(([, value]) => value);
  return formatFacts({
    ...toRow(base),
    account: base.account_id,
    source: `${base.platform} ${base.base_id}`,
    database: `${database.name} (${database.schema}) at ${database.host}:${database.port}`,
    settings: isOn.map(([name]) => name).join(", ") || null,
    tables: base.tables.length,
    issues: base.open_issue_count,
    completed_at: sync.completed_at,
    lag_ms: sync.lag_ms,
  });
}
