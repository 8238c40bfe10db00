/**
 * Stores better-auth's rows in our control plane, over the pool that the process already has.
 *
 * Tables and columns are ours (`users.email_verified`); the library's names are mapped to them. Queries that the
 * library never makes (substring searches, joins) are rejected.
 */
import { type CleanedWhere, createAdapterFactory } from "better-auth/adapters";
import type { BetterAuthOptions } from "better-auth/types";
import type { ISql, PendingQuery, Row } from "postgres";
import type { Db } from "../../../core/context";

type Values = Record<string, unknown>;
type Sql = ISql<Record<string, never>>;

const comparisons = { eq: "=", ne: "<>", lt: "<", lte: "<=", gt: ">", gte: ">=" } as const;

export function controlAdapter(db: Db) {
  return (options: BetterAuthOptions) =>
    adapterOn(db as unknown as Sql, (run) => db.begin((tx) => run(adapterOn(tx as unknown as Sql)(options))))(
      options,
    );
}

type Factory = ReturnType<typeof createAdapterFactory>;
type Transaction = <R>(run: (adapter: ReturnType<Factory>) => Promise<R>) => Promise<unknown>;

function adapterOn(sql: Sql, transaction?: Transaction): Factory {
  return createAdapterFactory({
    config: {
      adapterId: "basetide",
      supportsNumericIds: false,
      transaction: transaction ? (run) => transaction(run) as ReturnType<typeof run> : false,
    },
    adapter: ({ getFieldName }) => statements(sql, getFieldName),
  });
}

/** @param columnOf returns the column of a field: only the field to sort by does not arrive as a column */
function statements(sql: Sql, columnOf: (of: { model: string; field: string }) => string) {
  const where = (conditions: CleanedWhere[] | undefined) => whereClause(sql, conditions ?? []);
  /** At most one row: any of those that match. */
  const oneOf = (model: string, conditions: CleanedWhere[]) =>
    sql`id = (select id from ${sql(model)} where ${where(conditions)} limit 1 for update)`;
  return {
    async create<T extends Values>({ model, data }: { model: string; data: T }): Promise<T> {
      const [row] = await sql`insert into ${sql(model)} ${sql(asRow(data))} returning *`;
      return row as T;
    },
    async findOne<T>(query: { model: string; where: CleanedWhere[] }): Promise<T | null> {
      const [row] = await sql`select * from ${sql(query.model)} where ${where(query.where)} limit 1`;
      return (row as T | undefined) ?? null;
    },
    async findMany<T>(query: Query): Promise<T[]> {
      const { model, limit, offset = 0, sortBy } = query;
      const order = sortBy
        ? sql`order by ${sql(columnOf({ model, field: sortBy.field }))} ${sortBy.direction === "desc" ? sql`desc` : sql`asc`}`
        : sql``;
      const rows = await sql`
        select * from ${sql(model)} where ${where(query.where)} ${order} limit ${limit} offset ${offset}`;
      return rows as unknown as T[];
    },
    async count(query: { model: string; where?: CleanedWhere[] | undefined }): Promise<number> {
      const [row] = await sql`select count(*)::int as n from ${sql(query.model)} where ${where(query.where)}`;
      return row!.n;
    },
    async update<T>(query: { model: string; where: CleanedWhere[]; update: T }): Promise<T | null> {
      const [row] = await sql`
        update ${sql(query.model)} set ${sql(asRow(query.update))}
        where ${oneOf(query.model, query.where)} returning *`;
      return (row as T | undefined) ?? null;
    },
    async updateMany(query: { model: string; where: CleanedWhere[]; update: Values }): Promise<number> {
      const changed = await sql`
        update ${sql(query.model)} set ${sql(asRow(query.update))} where ${where(query.where)}`;
      return changed.count;
    },
    async delete(query: { model: string; where: CleanedWhere[] }): Promise<void> {
      await sql`delete from ${sql(query.model)} where ${where(query.where)}`;
    },
    async deleteMany(query: { model: string; where: CleanedWhere[] }): Promise<number> {
      return (await sql`delete from ${sql(query.model)} where ${where(query.where)}`).count;
    },
    /** Deletes a row and returns it. Of two concurrent calls, one gets it. */
    async consumeOne<T>(query: { model: string; where: CleanedWhere[] }): Promise<T | null> {
      const [row] =
        await sql`delete from ${sql(query.model)} where ${oneOf(query.model, query.where)} returning *`;
      return (row as T | undefined) ?? null;
    },
    /**
     * Increments in one statement, so that several consoles share a limit. The conditions are checked again under the
     * lock.
     */
    async incrementOne<T>(query: Increment): Promise<T | null> {
      const sets = [
        ...Object.entries(query.increment).map(([name, by]) => sql`${sql(name)} = ${sql(name)} + ${by}`),
        ...Object.entries(query.set ?? {}).map(([name, value]) => sql`${sql(name)} = ${value as string}`),
      ];
      const [row] = await sql`
        update ${sql(query.model)} set ${joined(sql, sets, sql`, `)}
        where ${oneOf(query.model, query.where)} and ${where(query.where)} returning *`;
      return (row as T | undefined) ?? null;
    },
  };
}

interface Query {
  model: string;
  where?: CleanedWhere[] | undefined;
  limit: number;
  offset?: number | undefined;
  sortBy?: { field: string; direction: "asc" | "desc" } | undefined;
}

interface Increment {
  model: string;
  where: CleanedWhere[];
  increment: Record<string, number>;
  set?: Values | undefined;
}

type Fragment = PendingQuery<Row[]>;

/** Matches rows for which all conditions joined by AND hold, and at least one of those joined by OR. */
function whereClause(sql: Sql, conditions: CleanedWhere[]): Fragment {
  const both = conditions.filter((one) => one.connector !== "OR").map((one) => condition(sql, one));
  const either = conditions.filter((one) => one.connector === "OR").map((one) => condition(sql, one));
  const parts = either.length > 0 ? [...both, sql`(${joined(sql, either, sql` or `)})`] : both;
  return parts.length > 0 ? joined(sql, parts, sql` and `) : sql`true`;
}

function condition(sql: Sql, { field, operator, value, mode }: CleanedWhere): Fragment {
  const column = sql(field);
  if (value === null) return operator === "ne" ? sql`${column} is not null` : sql`${column} is null`;
  if (operator === "in" && Array.isArray(value)) return sql`${column} = any(${value as string[]})`;
  if (operator === "not_in" && Array.isArray(value)) return sql`${column} <> all(${value as string[]})`;
  if (!(operator in comparisons) || mode === "insensitive" || Array.isArray(value)) {
    throw new Error(`better-auth asked for a condition that this adapter does not know: ${operator}`);
  }
  return sql`${column} ${sql.unsafe(comparisons[operator as keyof typeof comparisons])} ${value}`;
}

function joined(sql: Sql, parts: Fragment[], separator: Fragment): Fragment {
  return parts.reduce((all, part) => sql`${all}${separator}${part}`);
}

/** Leaves out values that are undefined. */
function asRow(values: unknown): Record<string, string> {
  const entries = Object.entries(values as Values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Record<string, string>;
}
