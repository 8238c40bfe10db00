/**
 * Moves an account with its bases to another control plane. The replicas stay where they are.
 *
 * 1. The source stops: its bases get the state `moving`, its rate limiter lets no request of them pass, and after a
 *    pause that every cache outlasts, the epochs of the replicas are raised.
 * 2. The rows are inserted in the target, where nothing serves a base in the state `moving`, and then deleted in the
 *    source. That commit is the point of no return.
 * 3. The target starts to serve.
 *
 * I5, I4. At no time do both control planes serve a base. After an interruption, neither does until the command is
 * repeated, or aborted before the point of no return. Each step may be repeated.
 */
import { wait } from "../../async";
import { conflict, notFound } from "../../errors";
import { asOnly } from "../../postgres";
import { recordChange } from "../audit";
import { forgetJobs, untilReleased } from "../jobs";
import { activate, requireArrived } from "./activate";
import { installationOf, type PlaneContext } from "./control-plane";
import { type MovingAccount, planMove } from "./plan";
import { requireProxies } from "./proxies";
import { closeQuota } from "./quota";
import { fenceReplicas, labelDatabases } from "./replicas";
import { takeRows } from "./rows";
import { accountScopeOf, quotaKeysOf } from "./scope";
import { insertAccount, type Transfer } from "./transfer";

/**
 * After this time no process of the source sends a request for a stopped base: proxies look bases up every 3 s, and
 * permits are for the next second.
 */
const DRAIN_MS = 6000;
const MARGIN_MS = 5000;

export interface MoveOptions {
  isMerging: boolean;
  /** Public URL of the target's proxy, for clients that still use the source's. */
  proxyUrl?: string | undefined;
  /** How long caches and permits of other processes may outlast the stop, ms. */
  drainMs?: number;
  /** Called after each step that an interruption may follow. */
  onStep?: (step: string) => void | Promise<void>;
}

interface MoveRow {
  state: "moving" | "moved";
  installation: string;
  ended_at: Date | null;
  base_ids: string[];
}

/** Finds an account by its id or its owner's address, also one that has left. @throws BasetideError `not_found` */
export async function findMovingAccount({ db }: PlaneContext, given: string): Promise<MovingAccount> {
  const [account] = await db<MovingAccount[]>`
    select id, email from accounts where id = ${given} or lower(email) = lower(${given.trim()})
    union all
    select account_id, email from account_moves
    where (account_id = ${given} or lower(email) = lower(${given.trim()})) and direction = 'out'
    limit 1`;
  if (account) return account;
  throw notFound(`There is no account ${given}`);
}

/**
 * Moves the account, or continues a move that was interrupted.
 *
 * @throws BasetideError `conflict`, with the remedy; nothing is changed if it comes before the first step
 */
export async function moveAccount(
  source: PlaneContext,
  target: PlaneContext,
  account: MovingAccount,
  options: MoveOptions,
): Promise<void> {
  const done = await asOnly(source.db, `move account ${account.id}`, () =>
    moveLocked(source, target, account, options),
  );
  if (!done) throw conflict("The account is already being moved by another command");
}

async function moveLocked(
  source: PlaneContext,
  target: PlaneContext,
  account: MovingAccount,
  options: MoveOptions,
): Promise<void> {
  const step = async (name: string) => void (await options.onStep?.(name));
  const begun = await loadMove(source, account.id);
  if (begun) await requireSameTarget(target, begun.installation);
  if (begun?.ended_at && begun.state === "moved") throw conflict("The account has been moved already");
  if (begun?.state !== "moved") {
    const { transfer } = await planMove(source, target, account, options);
    await requireProxies(source);
    await stopBases(source, account, await installationOf(target));
    await step("stopped");
    await drain(source, account.id, options.drainMs ?? DRAIN_MS);
    await step("drained");
    await fenceReplicas(source, account.id);
    await step("fenced");
    await transferRows(transfer, account, options, step);
    await step("moved");
  }
  await requireArrived(target, account.id, await installationOf(source));
  await labelDatabases(target, account.id);
  await step("labelled");
  await activate(target, account, await installationOf(source));
  await step("activated");
  await cleanUp(source, account.id);
}

export async function loadMove({ db }: PlaneContext, accountId: string): Promise<MoveRow | undefined> {
  const [row] = await db<(MoveRow & { direction: string })[]>`
    select direction, state, installation, ended_at, base_ids from account_moves where account_id = ${accountId}`;
  if (row?.direction === "in") {
    throw conflict(
      "The account's move to this control plane is not complete. Repeat the command that began it",
    );
  }
  return row;
}

/** @throws BasetideError `conflict` */
export async function requireSameTarget(target: PlaneContext, installation: string): Promise<void> {
  if ((await installationOf(target)) === installation) return;
  throw conflict(
    "A move of this account to another control plane than that of --to was begun. Complete or abort that one first",
  );
}

/** Marks all bases. A base that was connected during an interruption is stopped like the others. */
async function stopBases(
  { db, actor, config }: PlaneContext,
  { id, email }: MovingAccount,
  installation: string,
): Promise<void> {
  await db.begin(async (tx) => {
    await tx`select from accounts where id = ${id} for update`;
    const stopped = await tx<{ id: string }[]>`
      update bases set state = 'moving'
      where account_id = ${id} and state not in ('moving', 'deleting') and move_database_id is null returning id`;
    // A client's request waits for a permit for up to two of these times.
    await closeQuota(tx, await quotaKeysOf(tx, id), 2 * config.upstreamTimeoutMs + MARGIN_MS);
    const [begun] = await tx<{ is_new: boolean }[]>`
      insert into account_moves as m (account_id, direction, email, installation, base_ids)
      values (${id}, 'out', ${email}, ${installation}, array(select id from bases where account_id = ${id} order by id))
      on conflict (account_id) do update set base_ids = excluded.base_ids,
        began_at = case when ${stopped.length > 0}::boolean then now() else m.began_at end
      returning xmax = 0 as is_new`;
    if (!begun!.is_new) return;
    const details = { account: email, to: installation };
    await recordChange(tx, actor, { accountId: id, action: "account.move_started", subject: id, details });
  });
}

async function drain(source: PlaneContext, accountId: string, drainMs: number): Promise<void> {
  const { db } = source;
  const [move] = await db<{ stopped_ms: number; base_ids: string[] }[]>`
    select (extract(epoch from now() - began_at) * 1000)::float8 as stopped_ms, base_ids
    from account_moves where account_id = ${accountId}`;
  const { stopped_ms, base_ids } = move!;
  await Promise.all(base_ids.map((id) => untilReleased(db, id)));
  await wait(Math.max(0, drainMs - stopped_ms), new AbortController().signal);
  await requireProxies(source);
}

/** The target's transaction is committed within the source's. */
async function transferRows(
  transfer: Transfer,
  { id, email }: MovingAccount,
  { proxyUrl = undefined }: MoveOptions,
  step: (name: string) => Promise<void>,
): Promise<void> {
  const { source, target, shapes } = transfer;
  await source.db.begin(async (tx) => {
    // No row can be added that refers to the account, to one of its bases or databases, or to one of its people.
    await tx`select from accounts where id = ${id} for update`;
    await tx`select from databases where account_id = ${id} order by id for update`;
    const bases = await tx<{ state: string }[]>`
      select state from bases where account_id = ${id} order by id for update`;
    if (bases.some(({ state }) => state !== "moving"))
      throw conflict("A base was connected or deleted meanwhile. Repeat the command");
    const everyone = await accountScopeOf(tx, id);
    await tx`select from users where id = any (${[...everyone.leaving, ...everyone.copied]}) order by id for update`;
    const scope = await accountScopeOf(tx, id);
    await tx`
      insert into moved_bases (base_id, platform, source_base_id, proxy_url)
      select id, platform, source_base_id, ${proxyUrl ?? null} from bases where account_id = ${id}
      on conflict (base_id) do update set proxy_url = excluded.proxy_url, moved_at = now()`;
    await tx`
      delete from accepted_keys where source_base_id in (select source_base_id from bases where account_id = ${id})`;
    await tx`update account_moves set state = 'moved' where account_id = ${id}`;
    const details = { account: email, to: await installationOf(target) };
    // Not an entry of the account, whose entries move with it.
    await recordChange(tx, source.actor, {
      accountId: null,
      action: "account.moved_out",
      subject: id,
      details,
    });
    const rows = await takeRows(tx, shapes, scope);
    await step("taken");
    await target.db.begin((arriving) => insertAccount(arriving, transfer, scope, rows));
    await step("inserted");
    // Before the source forgets the databases, and after the target knows them: neither takes them for orphans.
    await labelDatabases(target, id);
    await step("labelled before");
  });
}

/** Forgets what the source's queue still has, and ends the move. */
async function cleanUp({ db }: PlaneContext, accountId: string): Promise<void> {
  const [move] = await db<{ base_ids: string[] }[]>`
    select base_ids from account_moves where account_id = ${accountId}`;
  for (const id of move?.base_ids ?? []) await forgetJobs(db, id);
  await db`update account_moves set ended_at = now() where account_id = ${accountId}`;
}
