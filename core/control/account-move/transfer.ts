/**
 * Carries an account's rows from one control plane to the other, within a transaction of each.
 *
 * The source's transaction deletes the rows and is committed last: at every moment, the source has all of them, or the
 * target has. Until `activate`, the target's bases are in the state `moving`, in which nothing serves them.
 */
import type { TransactionSql } from "postgres";
import { BasetideError } from "../../errors";
import { isUniqueViolation } from "../../postgres";
import { encryptedColumns } from "../setup";
import type { PlaneContext } from "./control-plane";
import { matchPeople, type People } from "./people";
import { reencrypted } from "./reencrypt";
import type { ClusterIds } from "./replicas";
import { insertRows, type MovedRow, type MovedRows, takeRows } from "./rows";
import type { AccountScope } from "./scope";
import { type ForeignKey, type MovedTable, UNDECLARED } from "./tables";

type Patch = Parameters<typeof insertRows>[2][number]["patch"];

export interface Transfer {
  source: PlaneContext;
  target: PlaneContext;
  sourceInstallation: string;
  shapes: MovedTable[];
  clusters: ClusterIds;
  isMerging: boolean;
}

/**
 * Replaces what an interrupted move has left in the target by these rows.
 *
 * @throws BasetideError `conflict` if the target has something of the same name
 */
export async function insertAccount(
  tx: TransactionSql,
  transfer: Transfer,
  scope: AccountScope,
  rows: MovedRows,
): Promise<void> {
  const { accountId } = scope;
  await removeArrived(tx, transfer.shapes, accountId);
  const people = await matchPeople(tx, rows.get("users")!, transfer.isMerging);
  const quotaKeys = await unknownKeys(tx, scope.quotaKeys);
  await recordArrival(tx, transfer, scope, rows, people, quotaKeys);
  const columns = await encryptedColumns({ db: transfer.source.db });
  /** By table: the new number by the old one. */
  const numbers = new Map<string, Map<number, number>>();
  for (const shape of transfer.shapes) {
    const all = rows.get(shape.name)!.filter((row) => isInserted(shape, row, people, quotaKeys));
    const patched: Parameters<typeof insertRows>[2] = [];
    for (const row of all) {
      const secrets = await reencrypted(transfer.source, transfer.target, shape.name, row, columns);
      const patch = {
        ...references(shape, row, people, numbers),
        ...changed(shape, row, transfer),
        ...secrets,
      };
      patched.push({ text: row.text, patch });
    }
    const given = await inserting(shape, () => insertRows(tx, shape, patched));
    const { identity } = shape;
    if (identity === null) continue;
    numbers.set(
      shape.name,
      new Map(all.map(({ values }, index) => [Number(values[identity]), given[index]!])),
    );
  }
}

/** Deletes what a move has inserted and not completed. */
export async function removeArrived(
  tx: TransactionSql,
  shapes: MovedTable[],
  accountId: string,
): Promise<void> {
  const [arrival] = await tx<{ user_ids: string[]; quota_keys: string[] }[]>`
    delete from account_moves where account_id = ${accountId} and direction = 'in' returning user_ids, quota_keys`;
  if (!arrival) return;
  const leaving = await tx<{ id: string }[]>`
    select id from users as u where id = any (${arrival.user_ids})
      and not exists (select from account_members as m where m.user_id = u.id and m.account_id <> ${accountId})`;
  await takeRows(tx, shapes, {
    accountId,
    leaving: leaving.map(({ id }) => id),
    copied: [],
    quotaKeys: arrival.quota_keys,
  });
}

async function recordArrival(
  tx: TransactionSql,
  { sourceInstallation }: Transfer,
  { accountId }: AccountScope,
  rows: MovedRows,
  people: People,
  quotaKeys: Set<string>,
): Promise<void> {
  const { email } = rows.get("accounts")![0]!.values;
  const bases = rows.get("bases")!.map(({ values }) => String(values.id));
  // The record of an earlier move from here is over with this one.
  await tx`delete from account_moves where account_id = ${accountId} and ended_at is not null`;
  await tx`
    insert into account_moves (account_id, direction, email, installation, base_ids, user_ids, quota_keys)
    values (${accountId}, 'in', ${String(email)}, ${sourceInstallation}, ${bases}, ${people.created},
      ${[...quotaKeys]})`;
}

/** The target counts calls to a base that it has connected itself. An earlier move may have left rows without calls. */
async function unknownKeys(tx: TransactionSql, keys: string[]): Promise<Set<string>> {
  await tx`delete from quota_calls where key = any (${keys}) and sync = 0 and client = 0`;
  const known = await tx<{ key: string }[]>`
    select key from quota_calls where key = any (${keys}) union select key from quota_kinds where key = any (${keys})`;
  const taken = new Set(known.map(({ key }) => key));
  return new Set(keys.filter((key) => !taken.has(key)));
}

function isInserted(
  { name }: MovedTable,
  { values }: MovedRow,
  { created }: People,
  quotaKeys: Set<string>,
): boolean {
  if (name === "users") return created.includes(String(values.id));
  if (name === "user_logins" || name === "two_factors") return created.includes(String(values.user_id));
  return !name.startsWith("quota_") || quotaKeys.has(String(values.key));
}

/** References to people whom the target knows by another id, and to rows with new numbers. */
function references(
  { name, keys }: MovedTable,
  { values }: MovedRow,
  { idOf }: People,
  numbers: Map<string, Map<number, number>>,
): Patch {
  const patch: Patch = {};
  for (const key of keys) {
    for (const column of userColumns(key)) {
      const id = values[column];
      if (typeof id === "string") patch[column] = idOf.get(id) ?? id;
    }
    const [column] = key.columns;
    const renumbered = numbers.get(key.parent)?.get(Number(values[column!]));
    if (renumbered !== undefined) patch[column!] = renumbered;
  }
  const undeclared = UNDECLARED[name];
  if (undeclared && values[undeclared.column] !== null) {
    patch[undeclared.column] = upTo(numbers.get(undeclared.parent)!, Number(values[undeclared.column]));
  }
  return patch;
}

/** Columns that refer to a user, also through a membership. */
function userColumns({ parent, columns, parentColumns }: ForeignKey): string[] {
  if (parent === "users") return columns;
  if (parent !== "account_members") return [];
  return columns.filter((_, index) => parentColumns[index] === "user_id");
}

/** The new number of the last row up to `number`; 0 before all of them. */
function upTo(numbers: Map<number, number>, number: number): number {
  let last = 0;
  for (const [before, now] of numbers) if (before <= number) last = Math.max(last, now);
  return last;
}

/** What has another value in the target. */
function changed({ name }: MovedTable, { values }: MovedRow, { clusters }: Transfer): Patch {
  if (name === "accounts") return { is_operator: false };
  if (name === "databases" && values.cluster_id !== null)
    return { cluster_id: clusters.get(String(values.cluster_id))! };
  if (name === "bases") return { state: "moving", progress: null, rests_until: null };
  return {};
}

async function inserting<T>({ name }: MovedTable, insert: () => Promise<T>): Promise<T> {
  try {
    return await insert();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    const { detail } = error as { detail?: string };
    throw new BasetideError(
      "conflict",
      `The other control plane has the same in its table ${name}: ${detail ?? "a unique key"}. Delete or rename it there, then move the account again`,
      { cause: error },
    );
  }
}
