/**
 * A hundred questions about real bases, which an agent answers by SQL: each answer equals what the records themselves say,
 * and none costs a call to Airtable.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { cachedShape } from "../../../apps/console/shape-cache";
import { startConsole } from "../../../apps/console/start";
import { createAgent } from "../../../core/control/agents";
import { pause } from "../../../core/control/bases";
import type { ColumnSpec, TableSpec } from "../../../core/replica";
import { agentClient } from "../../support/agent-client";
import { liftLimiter } from "../../support/consistency";
import { dataFolder, noDataReason } from "../../support/data";
import { startFleet } from "../../support/fleet";

vi.setConfig({ testTimeout: 180_000 });

const QUESTIONS = 100;
const BASES = ["cmip7-data-request", "unlocking-the-airwaves"];

interface Question {
  sql: string;
  /** By the records themselves. */
  answer: string[][];
}

type Cells = Record<string, unknown>;
type Records = { id: string; fields: Cells }[];

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const links = (cell: unknown): string[] => (Array.isArray(cell) ? cell : []) as string[];

function questionsAbout(tables: TableSpec[], recordsOf: (tableId: string) => Records): Question[] {
  return tables.flatMap((table) => {
    const records = recordsOf(table.tableId);
    const of = (column: ColumnSpec) => records.map(({ fields }) => fields[column.sourceName]);
    const from = quoted(table.name);
    const all: Question[] = [{ sql: `select count(*) from ${from}`, answer: [[String(records.length)]] }];
    for (const column of table.columns) {
      const name = quoted(column.name);
      if (column.type === "single_select") {
        const counts = Map.groupBy(
          of(column).filter((cell) => typeof cell === "string") as string[],
          (one) => one,
        );
        const [[most, ones] = ["", []]] = [...counts].sort((a, b) => b[1].length - a[1].length);
        if (ones.length > 0)
          all.push({
            sql: `select count(*) from ${from} where ${name} = '${most.replaceAll("'", "''")}'`,
            answer: [[String(ones.length)]],
          });
        all.push({ sql: `select count(distinct ${name}) from ${from}`, answer: [[String(counts.size)]] });
      }
      if (column.sourceType === "number") {
        const filled = of(column).filter((cell) => typeof cell === "number") as number[];
        if (filled.length > 0)
          all.push({
            sql: `select count(${name}), max(${name})::float8 from ${from}`,
            answer: [[String(filled.length), String(Math.max(...filled))]],
          });
      }
      const linked = tables.find(({ tableId }) => tableId === column.linkedTableId);
      if (linked && column.columnType === "text[]") {
        const known = new Set(recordsOf(linked.tableId).map(({ id }) => id));
        const pairs = of(column).flatMap((cell) => [...new Set(links(cell))].filter((id) => known.has(id)));
        all.push({
          sql: `select count(*) from ${from} as a join ${quoted(linked.name)} as b on a.${name} @> array[b.id]`,
          answer: [[String(pairs.length)]],
        });
        const without = of(column).filter((cell) => links(cell).length === 0);
        all.push({
          sql: `select count(*) from ${from} where coalesce(cardinality(${name}), 0) = 0`,
          answer: [[String(without.length)]],
        });
      }
    }
    return all;
  });
}

test("a hundred questions about real bases have the right answers, at no call to Airtable", async ({
  skip,
}) => {
  if (!dataFolder) return skip(noDataReason);
  await using fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } }, workers: 0 });
  await liftLimiter(fleet);
  await fleet.addWorker();
  const running = await startConsole(fleet.ctx, { port: 0 });
  try {
    const asked: (Question & { base: string })[] = [];
    const bases: string[] = [];
    for (const folder of BASES) {
      const path = join(dataFolder, folder);
      const sourceId = fleet.sandbox.control.load({ folder: path, computed: "frozen" });
      const connected = await fleet.connect(sourceId, { turbo: true });
      const base = await fleet.synced(connected.id, 120_000);
      await pause(fleet.ctx, base);
      bases.push(base.id);
      const recordsOf = (id: string) => JSON.parse(readFileSync(join(path, `${id}.json`), "utf8")) as Records;
      const { tables } = await cachedShape(fleet.ctx, base);
      asked.push(...questionsAbout(tables, recordsOf).map((one) => ({ ...one, base: base.id })));
    }
    const ctx = { ...fleet.ctx, actor: { kind: "user", name: "owner@example.org" } as const };
    const [account] = await fleet.ctx.db<{ id: string }[]>`select account_id as id from bases limit 1`;
    const { agent, token } = await createAgent(ctx, account!.id, {
      name: "Analyst",
      mayPropose: false,
      bases: bases.map((baseId) => ({ baseId, hasPrivate: true })),
    });
    await fleet.ctx.db`update agents set limits = '{"calls": 100000}' where id = ${agent.id}`;
    await using client = await agentClient(`http://localhost:${running.port}`, token);
    // Evenly over both bases and all kinds.
    const step = asked.length / QUESTIONS;
    const questions = Array.from({ length: QUESTIONS }, (_, nth) => asked[Math.floor(nth * step)]!);
    expect(asked.length).toBeGreaterThanOrEqual(QUESTIONS);
    // A sync that runs when its base is paused goes on: only the agent may be counted.
    for (const worker of fleet.workers) await worker.stop();
    fleet.sandbox.control.clearLog();
    for (const { base, sql, answer } of questions) {
      const { text, data } = await client.call("query", { base, sql });
      expect([sql, data?.results[0].rows ?? text]).toEqual([sql, answer]);
      expect(data).toMatchObject({ as_of: expect.any(String), results: [{ is_cut: false }] });
    }
    expect(fleet.sandbox.control.log()).toEqual([]);
  } finally {
    await running.stop();
  }
});
