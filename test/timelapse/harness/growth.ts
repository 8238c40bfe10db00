/** Measures what grows: rows and bytes of every table, files, memory and logs, and compares that with what may grow. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type postgres from "postgres";
import { type Retention, retention } from "../../../core/control/retention/retention";
import type { LapseBase } from "./base";
import type { Service } from "./service";

/** Housekeeping runs once an hour, and once a day in a time lapse. */
const LATE_DAYS = 2;
const DAY_MS = 24 * 3600_000;
/** What a table may have more in the second half than in the first, besides the growth that its rule allows: rows, and bytes. */
const ROWS_SLACK = 20;
const BYTES_SLACK = 512 * 1024;
/** The share by which what is bounded may vary. */
const VARIATION = 0.25;
/** Memory that a process may take more at the end than half way, MB. */
const MEMORY_SLACK_MB = 60;

/** Rows that are deleted with those of another table grow as these do. */
const PARENTS: Record<string, string> = { change_items: "change_sets", alert_notices: "alerts" };

interface Size {
  rows: number;
  bytes: number;
}

export interface Sample {
  day: number;
  /** Tables of the control plane by name, and of replicas as `mode: name`. */
  tables: Map<string, Size>;
  files: { data: Size; postgres: Size };
  /** Resident memory by process, MB; and what it has logged, bytes. */
  memory: Map<string, number>;
  logged: Map<string, number>;
}

export async function sample(service: Service, bases: LapseBase[], day: number): Promise<Sample> {
  // Days pass in seconds: autovacuum would have come every minute.
  for (const database of ["basetide", ...bases.map((base) => base.database)])
    await service.superuser(database)`vacuum`;
  const tables = await sizesOf(service.control, ["public", "pgboss"]);
  for (const base of bases) {
    const replica = await sizesOf(service.superuser(base.database), ["public", "public_swap"]);
    for (const [name, size] of replica) tables.set(`${base.mode}: ${name}`, size);
  }
  const running = service.processes.filter(({ pid }) => pid !== undefined);
  return {
    day,
    tables,
    files: {
      data: filesIn(service.folders.data),
      postgres: filesIn(join(service.folders.postgres, "pg_wal")),
    },
    memory: new Map(running.map(({ name, pid }) => [name, residentMb(pid!)])),
    logged: new Map(running.map(({ name, logLength }) => [name, logLength])),
  };
}

/** Returns what grows without a bound, and rows that are older than their rule says. */
export async function violations(service: Service, samples: Sample[], days: number): Promise<string[]> {
  const found: string[] = [];
  const middle = Math.floor(samples.length / 2);
  const [half, last] = [samples[middle]!, samples.at(-1)!];
  const [early, late] = [samples.slice(0, middle + 1), samples.slice(middle + 1)].map(most);
  for (const [name, { rows, bytes }] of late!) {
    const isControl = !name.includes(":");
    const rule = retention[PARENTS[name] ?? name];
    if (isControl && !rule) {
      found.push(`${name}: no stated retention`);
      continue;
    }
    const before = early!.get(name) ?? { rows: 0, bytes: 0 };
    // Rows that are kept for longer than half of the run go on growing as they did before.
    const growth =
      isControl && mayGrow(rule!, half.day) ? 1 + (last.day - half.day) / Math.max(1, half.day) : 1;
    const allowed = (amount: number, slack: number) => amount * growth * (1 + VARIATION) + slack;
    if (rows > allowed(before.rows, ROWS_SLACK))
      found.push(`${name}: up to ${before.rows} rows until day ${half.day}, ${rows} until day ${last.day}`);
    if (bytes > allowed(before.bytes, BYTES_SLACK))
      found.push(
        `${name}: up to ${kb(before.bytes)} kB until day ${half.day}, ${kb(bytes)} kB until day ${last.day}`,
      );
  }
  for (const [table, rule] of Object.entries(retention)) {
    const oldest = await oldestDays(service.control, table, rule);
    if (oldest !== undefined && oldest.is > oldest.kept + LATE_DAYS)
      found.push(`${table}: a row is ${oldest.is.toFixed(1)} days old, kept for ${oldest.kept}`);
  }
  const first = samples[0]!;
  if (last.files.data.rows > first.files.data.rows)
    found.push(`DATA_DIR: ${first.files.data.rows} files at first, ${last.files.data.rows} at the end`);
  if (last.files.postgres.bytes > 2 * half.files.postgres.bytes + 256 * 2 ** 20)
    found.push(`pg_wal: ${kb(half.files.postgres.bytes)} kB, then ${kb(last.files.postgres.bytes)} kB`);
  for (const [name, mb] of days < 20 ? [] : last.memory) {
    const before = half.memory.get(name) ?? mb;
    if (mb > before * (1 + VARIATION) + MEMORY_SLACK_MB) found.push(`${name}: ${before} MB, then ${mb} MB`);
  }
  return found;
}

/** Returns the most that each table had: what is deleted now and then has been deleted on some of the days only. */
function most(samples: Sample[]): Map<string, Size> {
  const sizes = new Map<string, Size>();
  for (const { tables } of samples)
    for (const [name, { rows, bytes }] of tables) {
      const before = sizes.get(name) ?? { rows: 0, bytes: 0 };
      sizes.set(name, { rows: Math.max(before.rows, rows), bytes: Math.max(before.bytes, bytes) });
    }
  return sizes;
}

/** Prints rows and bytes of the tables that have more than a few, by day. */
export function report(samples: Sample[], bases: number): string {
  const [first, half, last] = [samples[0]!, samples[Math.floor(samples.length / 2)]!, samples.at(-1)!];
  const perDay = (amount: number) => amount / Math.max(1, last.day - half.day) / bases;
  const line = (columns: (string | number)[]) =>
    columns.map((text, at) => (at === 0 ? String(text).padEnd(34) : String(text).padStart(11))).join(" ");
  const lines = [
    line([
      "table",
      `rows d${first.day}`,
      `rows d${half.day}`,
      `rows d${last.day}`,
      `kB d${half.day}`,
      `kB d${last.day}`,
      "rows/b/d",
      "bytes/b/d",
    ]),
  ];
  for (const [name, size] of [...last.tables].sort(([, a], [, b]) => b.bytes - a.bytes)) {
    const before = half.tables.get(name) ?? { rows: 0, bytes: 0 };
    const isSmall = size.rows <= 5 && size.bytes <= 64 * 1024;
    if (isSmall || /: [a-z]/.test(name)) continue;
    lines.push(
      line([
        name,
        first.tables.get(name)?.rows ?? 0,
        before.rows,
        size.rows,
        kb(before.bytes),
        kb(size.bytes),
        perDay(size.rows - before.rows).toFixed(2),
        Math.round(perDay(size.bytes - before.bytes)),
      ]),
    );
  }
  const total = (one: Sample) => [...one.tables.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  lines.push(`all tables: ${samples.map((one) => `${kb(total(one))}`).join(" ")} kB by day`);
  lines.push(
    `DATA_DIR: ${last.files.data.rows} files; pg_wal: ${samples.map(({ files }) => kb(files.postgres.bytes)).join(" ")} kB`,
  );
  for (const [name] of last.memory)
    lines.push(
      `${name}: ${samples.map(({ memory }) => memory.get(name) ?? "-").join(" ")} MB; logged ${Math.round((last.logged.get(name) ?? 0) / Math.max(1, last.day))} bytes a day`,
    );
  return lines.join("\n");
}

/** Whether rows of the table are kept for longer than these days. */
function mayGrow(rule: Retention, days: number): boolean {
  return "kept" in rule && daysOf(rule.kept) > days;
}

async function oldestDays(sql: postgres.Sql, table: string, rule: Retention) {
  if ("bound" in rule) return undefined;
  const [column, kept] = "expires" in rule ? [rule.expires, 0] : [rule.column, daysOf(rule.kept)];
  const only = "only" in rule && rule.only ? `where ${rule.only}` : "";
  const [row] = await sql.unsafe<{ is: number | null }[]>(`
    select extract(epoch from now() - min(${column})::timestamptz)::float8 / 86400 as is from ${table} ${only}`);
  // A month's row is as old as its last day.
  const off = column === "month" ? 31 : 0;
  return row?.is == null || !Number.isFinite(row.is) ? undefined : { is: row.is - off, kept };
}

function daysOf(interval: string): number {
  const [, amount, unit] = /^(\d+) (hour|day|year)s?$/.exec(interval)!;
  return Number(amount) * { hour: 1 / 24, day: 1, year: 365 }[unit as "hour" | "day" | "year"];
}

async function sizesOf(sql: postgres.Sql, schemas: string[]): Promise<Map<string, Size>> {
  const tables = await sql<{ schema: string; name: string; bytes: number }[]>`
    select n.nspname as schema, c.relname as name, pg_total_relation_size(c.oid)::float8 as bytes
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname = any (${schemas})`;
  const sizes = new Map<string, Size>();
  for (const { schema, name, bytes } of tables) {
    // pg-boss has its jobs and statistics in partitions.
    const shown = (schema === "public" ? name : `${schema}.${name}`)
      .replace("job_common", "job")
      .replace(/_\d{8}$/, "");
    const [row] = await sql.unsafe<{ rows: number }[]>(
      `select count(*)::int as rows from "${schema}"."${name}"`,
    );
    const known = sizes.get(shown) ?? { rows: 0, bytes: 0 };
    sizes.set(shown, { rows: known.rows + row!.rows, bytes: known.bytes + bytes });
  }
  return sizes;
}

function filesIn(folder: string): Size {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const bytes = files.reduce((sum, one) => sum + sizeOfFile(join(one.parentPath, one.name)), 0);
  return { rows: files.length, bytes };
}

/** 0 for one that is gone. */
function sizeOfFile(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function residentMb(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kilobytes ?? 0) / 1024);
}

function kb(bytes: number): number {
  return Math.round(bytes / 1024);
}

/** For the ages of what a run has made. */
export function daysAfter(from: Date, days: number): Date {
  return new Date(from.getTime() + days * DAY_MS);
}
