/** What a move would do, and everything that can be known to prevent it, before anything is changed. */
import { conflict } from "../../errors";
import { encryptedColumns } from "../setup";
import { movedTables, requireSameTables } from "./catalog";
import { installationOf, type PlaneContext, requireOther } from "./control-plane";
import { matchPeople, requireFreeAccount } from "./people";
import { reencrypted } from "./reencrypt";
import { matchClusters } from "./replicas";
import { readAccountRows } from "./rows";
import { type AccountScope, accountScopeOf } from "./scope";
import type { Transfer } from "./transfer";

export interface MovingAccount {
  id: string;
  email: string;
}

export interface MovePlan {
  account: MovingAccount;
  /** Rows by table, without empty ones. */
  rows: Record<string, number>;
  bases: string[];
  /** Addresses of people who also belong to other accounts: they keep their logins here. */
  copiedPeople: string[];
  /** Addresses of people who keep the login that they have in the target. */
  mergedPeople: string[];
}

/** @throws BasetideError `conflict`, with the remedy */
export async function planMove(
  source: PlaneContext,
  target: PlaneContext,
  account: MovingAccount,
  { isMerging }: { isMerging: boolean },
): Promise<{ plan: MovePlan; transfer: Transfer }> {
  await requireOther(source, target);
  const shapes = await movedTables(source.db);
  requireSameTables(shapes, await movedTables(target.db));
  await refuseBusyBases(source, account);
  await refuseSharedBases(source, account);
  const clusters = await matchClusters(source, target, account.id);
  const sourceInstallation = await installationOf(source);
  const transfer = { source, target, sourceInstallation, shapes, clusters, isMerging };
  const scope = await accountScopeOf(source.db, account.id);
  return { plan: await countRows(transfer, account, scope), transfer };
}

async function countRows(
  { source, target, shapes, isMerging }: Transfer,
  account: MovingAccount,
  scope: AccountScope,
): Promise<MovePlan> {
  const rows = await readAccountRows(source.db, shapes, scope);
  const columns = await encryptedColumns(source);
  for (const { name } of shapes) {
    for (const row of rows.get(name)!) await reencrypted(source, target, name, row, columns);
  }
  const users = rows.get("users")!;
  const people = await matchPeople(target.db, users, isMerging);
  const owner = rows.get("account_members")!.find(({ values }) => values.role === "owner");
  await requireFreeAccount(target.db, account, people.idOf.get(String(owner?.values.user_id)));
  const emails = (ids: string[]) =>
    users.filter(({ values }) => ids.includes(String(values.id))).map(({ values }) => String(values.email));
  return {
    account,
    rows: Object.fromEntries(
      shapes.map(({ name }) => [name, rows.get(name)!.length] as const).filter(([, count]) => count > 0),
    ),
    bases: rows.get("bases")!.map(({ values }) => `${values.id} ${values.name}`),
    copiedPeople: emails(scope.copied),
    mergedPeople: people.merged,
  };
}

async function refuseBusyBases({ db }: PlaneContext, { id }: MovingAccount): Promise<void> {
  const [busy] = await db<{ id: string; state: string }[]>`
    select id, state from bases
    where account_id = ${id} and (state = 'deleting' or move_database_id is not null) limit 1`;
  if (!busy) return;
  const what = busy.state === "deleting" ? "being deleted" : "being moved to another cluster";
  throw conflict(
    `The base ${busy.id} is ${what}. Wait until that is over (\`operator base show\`), then move the account`,
  );
}

/** Two rate limiters would share one limit of the source. */
async function refuseSharedBases({ db }: PlaneContext, { id }: MovingAccount): Promise<void> {
  const [shared] = await db<{ source: string; account: string }[]>`
    select b.source_base_id as source, a.email as account from bases as b
      join bases as o on o.platform = b.platform and o.source_base_id = b.source_base_id and o.account_id <> b.account_id
      join accounts as a on a.id = o.account_id
    where b.account_id = ${id} limit 1`;
  if (!shared) return;
  throw conflict(
    `The account ${shared.account} has connected ${shared.source}, too. Two control planes would exceed Airtable's rate limit for that base: delete the base in one of the accounts first`,
  );
}
