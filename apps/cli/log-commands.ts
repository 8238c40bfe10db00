/** `basetide runs`, `basetide issues` and `basetide logs`. */
import type { Command } from "commander";
import { formatTable, printable, printResult } from "../../core/terminal";
import { findBase } from "./base-ref";
import { type ApiClient, ApiFailure, type ApiSchemas, dataOf } from "./client";
import { type Common, command } from "./commands";
import { openClient } from "./session";

const POLL_MS = 2000;
/** Entries that one poll reads; a base has far fewer in two seconds. */
const LATEST = 100;

interface LogLine {
  id: string;
  at: string;
  kind: string;
  text: string;
}

export function addLogCommands(program: Command): void {
  program.addCommand(
    command("runs", "the latest syncs, newest first")
      .argument("<base>", "id, Airtable id or name")
      .option("--limit <number>", "how many", Number, 20)
      .action(async (reference: string, { json = false, limit }: Common & { limit: number }) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        const runs = await dataOf(
          client.GET("/api/v1/bases/{id}/runs", { params: { path: { id }, query: { limit } } }),
        );
        printResult(runs, json, () => formatTable(runs.map(runRow), "No syncs yet"));
      }),
  );
  program.addCommand(
    command("writes", "the latest rows that SQL users have written, newest first")
      .argument("<base>", "id, Airtable id or name")
      .option("--unknown", "only those of which it is not known whether Airtable has made them")
      .action(async (reference: string, { json = false, unknown }: Common & { unknown?: boolean }) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        const params = { path: { id }, query: unknown ? { unknown } : {} };
        const writes = await dataOf(client.GET("/api/v1/bases/{id}/writes", { params }));
        printResult(writes, json, () => formatTable(writes.map(writeRow), "No writes with SQL yet"));
      }),
  );
  program.addCommand(
    command("issues", "cells that do not fit their column, by field and reason")
      .argument("<base>", "id, Airtable id or name")
      .action(async (reference: string, { json = false }: Common) => {
        const { issues, issue_count, open_issue_count, settings } = await findBase(openClient(), reference);
        const muted = new Set(
          settings.muted_fields.map(({ table_id, field_id }) => `${table_id} ${field_id}`),
        );
        printResult({ issue_count, open_issue_count, issues }, json, () => {
          const rows = issues.map(
            ({ kind, table, column, reason, count, record_id, table_id, field_id }) => ({
              ...{ table, column, reason, count, kind, example: record_id },
              muted: muted.has(`${table_id} ${field_id}`) ? "muted" : null,
            }),
          );
          const listed = issues.reduce((sum, { count }) => sum + count, 0);
          const more = issue_count > listed ? `\n${issue_count - listed} more` : "";
          return formatTable(rows, "No issues") + more;
        });
      }),
  );
  program.addCommand(
    command("logs", "syncs and schema changes, oldest first; with --json one object per line")
      .argument("<base>", "id, Airtable id or name")
      .option("-f, --follow", "wait for more")
      .action(async (reference: string, { json = false, follow = false }: Common & { follow?: boolean }) => {
        const client = openClient();
        const { id } = await findBase(client, reference);
        let printed: Set<string> | undefined;
        do {
          const entries = await entriesOf(client, id).catch((error: unknown) => {
            // Following goes on when the service is back.
            if (!printed || !isPassing(error)) throw error;
            return undefined;
          });
          for (const entry of entries ?? []) {
            // A run that combines several syncs changes; only its first state is an entry.
            if (printed?.has(keyOf(entry))) continue;
            const line = json ? JSON.stringify(entry) : `${entry.at}  ${entry.kind}  ${entry.text}`;
            console.log(printable(line));
          }
          if (entries) printed = new Set(entries.map(keyOf));
          if (follow) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        } while (follow);
      }),
  );
}

/** A run and a change may have the same id. */
function keyOf({ kind, id }: LogLine): string {
  return `${kind} ${id}`;
}

/** The service answers with an error of its own, or not at all. */
function isPassing(error: unknown): boolean {
  return !(error instanceof ApiFailure) || error.status >= 500 || error.status === 429;
}

async function entriesOf(client: ApiClient, id: string): Promise<LogLine[]> {
  const params = { path: { id }, query: { limit: LATEST } };
  const [runs, changes] = await Promise.all([
    dataOf(client.GET("/api/v1/bases/{id}/runs", { params })),
    dataOf(client.GET("/api/v1/bases/{id}/schema-changes", { params })),
  ]);
  const entries = [
    ...runs.filter(({ completed_at }) => completed_at).map(runEntry),
    ...changes.map(
      (change): LogLine => ({
        id: change.id,
        at: change.seen_at,
        kind: change.kind,
        text: `${change.table}${change.field ? `.${change.field}` : ""}${renamed(change)}`,
      }),
    ),
  ];
  return entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

function runEntry(run: ApiSchemas["Run"]): LogLine {
  const { id, kind, completed_at, duration_ms, inserted, updated, deleted, error } = run;
  const text = error
    ? `failed: ${error.code}: ${error.message}`
    : `${Math.round(duration_ms ?? 0)} ms, ${inserted} inserted, ${updated} updated, ${deleted} deleted`;
  return { id, at: completed_at!, kind, text };
}

function renamed({ before, after }: ApiSchemas["SchemaChange"]): string {
  return before && after && before.name !== after.name ? ` (was ${before.name})` : "";
}

function runRow(run: ApiSchemas["Run"]) {
  const { kind, syncs, started_at, duration_ms, seen, inserted, updated, deleted, requests, error } = run;
  const duration = duration_ms === null ? null : `${Math.round(duration_ms)} ms`;
  return {
    started_at,
    kind,
    syncs,
    duration,
    seen,
    inserted,
    updated,
    deleted,
    requests,
    error: error?.code,
  };
}

function writeRow({ at, user, table, record, operation, state, error }: ApiSchemas["SqlWrite"]) {
  return { at, user, table, record: record ?? "", operation, state, error: printable(error) };
}
