/**
 * Finds everything that is encrypted in the control plane by the names of its columns: `encrypted_<name>` of a
 * table with an id is encrypted for the context `<table>.<name>:<id>`. A rotation of SECRET_KEY therefore covers
 * all of them.
 */
import type { Context } from "../../context";
import { isBasetideError } from "../../errors";
import type { SecretContext } from "../../secrets";
import { recordChange } from "../audit";
import { examineTwoFactors, rotateTwoFactors } from "./two-factor-encryption";

type EncryptionContext = Pick<Context, "db" | "secrets" | "actor" | "config">;

/** Rows read in one batch: a row is locked only while it is written. */
const BATCH = 100;

export interface EncryptedColumn {
  table: string;
  column: string;
  /** The table's primary key, of one column. */
  key: string;
}

/** Ordered by name. @throws Error for a column of a table without a primary key of one column */
export async function encryptedColumns({ db }: Pick<Context, "db">): Promise<EncryptedColumn[]> {
  const columns = await db<(Omit<EncryptedColumn, "key"> & { keys: string[] | null })[]>`
    select c.relname as "table", a.attname as "column",
      (select array_agg(k.attname::text) from pg_index as i
        join pg_attribute as k on k.attrelid = c.oid and k.attnum = any (i.indkey)
        where i.indrelid = c.oid and i.indisprimary) as keys
    from pg_attribute as a join pg_class as c on c.oid = a.attrelid
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and starts_with(a.attname, 'encrypted_')
      and not a.attisdropped
    order by 1, 2`;
  return columns.map(({ table, column, keys }) => {
    const [key, ...others] = keys ?? [];
    if (key === undefined || others.length > 0)
      throw new Error(`${table}.${column} has no id to be encrypted for`);
    return { table, column, key };
  });
}

/** The context that an encrypted value is bound to. */
export function contextOf({ table, column }: EncryptedColumn, id: string): SecretContext {
  return `${table}.${column.slice("encrypted_".length)}:${id}` as SecretContext;
}

interface EncryptionCount {
  /** Values that can be decrypted. */
  readable: number;
  /** Of those: encrypted with a key of SECRET_KEY_PREVIOUS. */
  previous: number;
  unreadable: number;
}

/** Tries to decrypt every value. */
export async function examineEncryption(ctx: EncryptionContext): Promise<EncryptionCount> {
  const count: EncryptionCount = await examineTwoFactors(ctx);
  for (const column of await encryptedColumns(ctx)) {
    for await (const { id, encrypted } of rowsOf(ctx, column, "")) {
      if (opened(ctx, column, id, encrypted) === null) count.unreadable += 1;
      else {
        count.readable += 1;
        if (!ctx.secrets.isCurrent(encrypted)) count.previous += 1;
      }
    }
  }
  return count;
}

interface Rotation {
  /** Encrypted again with the current key. */
  reencrypted: number;
  /** Encrypted with a missing key, and left unchanged. */
  unreadable: number;
}

/**
 * Encrypts all values again that were encrypted with another than the current key. May be interrupted and repeated,
 * and run next to the services: a value that is changed meanwhile keeps that change.
 */
export async function rotateEncryption(ctx: EncryptionContext): Promise<Rotation> {
  const done: Rotation = await rotateTwoFactors(ctx);
  for (const column of await encryptedColumns(ctx)) {
    const { table, column: name, key } = column;
    for await (const { id, encrypted } of rowsOf(ctx, column, ctx.secrets.currentPrefix)) {
      const plain = opened(ctx, column, id, encrypted);
      if (plain === null) {
        done.unreadable += 1;
        continue;
      }
      const { count } = await ctx.db`
        update ${ctx.db(table)} set ${ctx.db(name)} = ${ctx.secrets.encrypt(plain, contextOf(column, id))}
        where ${ctx.db(key)} = ${id} and ${ctx.db(name)} = ${encrypted}`;
      done.reencrypted += count;
    }
  }
  if (done.reencrypted > 0) {
    await recordChange(ctx.db, ctx.actor, {
      accountId: null,
      action: "secrets.rotated",
      details: { ...done },
    });
  }
  return done;
}

/** Reads encrypted values that do not begin with `except`, unless it is empty; in batches, ordered by id. */
async function* rowsOf({ db }: Pick<Context, "db">, { table, column, key }: EncryptedColumn, except: string) {
  for (let after = ""; ; ) {
    const rows: { id: string; encrypted: string }[] = await db`
      select ${db(key)} as id, ${db(column)} as encrypted from ${db(table)}
      where ${db(column)} is not null and ${db(key)} > ${after}
        and (${except === ""} or not starts_with(${db(column)}, ${except}))
      order by ${db(key)} limit ${BATCH}`;
    yield* rows;
    if (rows.length < BATCH) return;
    after = rows.at(-1)!.id;
  }
}

function opened(
  { secrets }: EncryptionContext,
  column: EncryptedColumn,
  id: string,
  encrypted: string,
): string | null {
  try {
    return secrets.decrypt(encrypted, contextOf(column, id));
  } catch (error) {
    if (isBasetideError(error, "secret_unreadable")) return null;
    throw error;
  }
}
