/**
 * Removes a member from an account, and revokes the secrets that they may have seen.
 *
 * Their sessions, the API tokens that they created and the clients that they connected to agents stop working with the
 * removal. Database passwords, attachment links and tokens of other members are shared: they stay valid unless the remover
 * revokes them here.
 */
import type { Actor } from "../../context";
import { asBasetideError, BasetideError, conflict, notFound } from "../../errors";
import { actorOf, type CurrentUser } from "../accounts";
import { recordChange } from "../audit";
import { getBase, type ManagementContext, revokeAttachmentLinks } from "../bases";
import {
  type Database,
  endDatabaseSessions,
  endSqlUserSessions,
  listDatabases,
  listSqlUsers,
  rotateCredentials,
  rotateSqlUser,
} from "../placement";
import { listMembers } from "./members";

/** Who removes the member: the owner any other member, a member themselves. */
interface Remover {
  accountId: string;
  /** Null: a token of the owner. */
  userId: string | null;
  isOwner: boolean;
  actor: Actor;
}

interface RemovalOptions {
  /** Sets new passwords for the account's hosted databases and their SQL users; open connections with the old ones end. */
  rotateCredentials?: boolean | undefined;
  /** Ends all attachment links of the account's bases. */
  revokeAttachmentLinks?: boolean | undefined;
  /** Revokes all API tokens of the account, not only those that the member created. */
  revokeTokens?: boolean | undefined;
}

/** The outcome for one database or base. */
interface Revocation {
  id: string;
  name: string;
  /** Why it failed; null if it succeeded. */
  error: string | null;
}

export interface Removal {
  email: string;
  tokensRevoked: number;
  databases: Revocation[];
  attachmentLinks: Revocation[];
  /** The secrets that the member may have seen and that still work, as text. */
  remains: string[];
}

export function removerOf(currentUser: CurrentUser): Remover {
  const { account, userId } = currentUser;
  return { accountId: account.id, userId, isOwner: account.role === "owner", actor: actorOf(currentUser) };
}

/**
 * Removes the member first, so that an unreachable database does not prevent the removal.
 *
 * @throws BasetideError `forbidden`, `not_found`, `conflict` for the owner
 */
export async function removeMember(
  ctx: ManagementContext,
  remover: Remover,
  userId: string,
  options: RemovalOptions = {},
): Promise<Removal> {
  const { accountId, actor } = remover;
  if (!remover.isOwner && userId !== remover.userId) {
    throw new BasetideError("forbidden", "Only the owner of the account may do this");
  }
  const member = (await listMembers(ctx.db, accountId)).find((one) => one.userId === userId);
  if (!member) throw notFound("This member does not exist");
  if (member.role === "owner") throw conflict("The owner cannot leave the account");
  const isOwner = remover.isOwner;
  const tokensRevoked = await endMembership(ctx, remover, member, isOwner && options.revokeTokens === true);
  const as = { ...ctx, actor };
  const databases = isOwner && options.rotateCredentials ? await rotateAll(as, accountId) : [];
  const attachmentLinks = isOwner && options.revokeAttachmentLinks ? await revokeAllLinks(as, accountId) : [];
  const remains = remaining(isOwner ? options : {}, databases, attachmentLinks);
  return { email: member.email, tokensRevoked, databases, attachmentLinks, remains };
}

async function endMembership(
  { db }: ManagementContext,
  { accountId, actor }: Remover,
  { userId, email }: { userId: string; email: string },
  revokesAllTokens: boolean,
): Promise<number> {
  return db.begin(async (tx) => {
    await tx`delete from account_members where account_id = ${accountId} and user_id = ${userId}`;
    await tx`update sessions set account_id = null where account_id = ${accountId} and user_id = ${userId}`;
    for (const table of ["oauth_consents", "oauth_access_tokens", "oauth_refresh_tokens"])
      await tx`
        delete from ${tx(table)}
        where user_id = ${userId} and reference_id in (select id from agents where account_id = ${accountId})`;
    const { count } = await tx`
      delete from api_tokens
      where account_id = ${accountId} and (created_by = ${userId} or ${revokesAllTokens})`;
    const details = { email, tokens_revoked: count };
    await recordChange(tx, actor, { accountId, action: "member.removed", subject: userId, details });
    return count;
  });
}

/** No cluster waits for another one, and one that does not answer is asked once. */
async function rotateAll(
  ctx: ManagementContext & { actor: Actor },
  accountId: string,
): Promise<Revocation[]> {
  const databases = await listDatabases(ctx.db, accountId);
  const errors = new Map<string, BasetideError | null>();
  const rotateOn = async (own: Database[]) => {
    let away: BasetideError | null = null;
    for (const database of own) {
      const error: BasetideError | null =
        away ?? (await rotate(ctx, database).then(() => null, asBasetideError));
      errors.set(database.id, error);
      if (error?.code === "replica_unavailable") away = error;
    }
  };
  await Promise.all([...Map.groupBy(databases, ({ clusterId }) => clusterId).values()].map(rotateOn));
  return databases.map(({ id, name }) => ({ id, name, error: errors.get(id)?.message ?? null }));
}

async function rotate(ctx: ManagementContext & { actor: Actor }, database: Database): Promise<void> {
  await rotateCredentials(ctx, database);
  await endDatabaseSessions(ctx, database);
  for (const user of await listSqlUsers(ctx.db, database.id)) {
    await rotateSqlUser(ctx, database, user);
    await endSqlUserSessions(ctx, database, user);
  }
}

async function revokeAllLinks(
  ctx: ManagementContext & { actor: Actor },
  accountId: string,
): Promise<Revocation[]> {
  const bases = await ctx.db<{ id: string; name: string }[]>`
    select id, name from bases
    where account_id = ${accountId} and encrypted_attachment_key is not null and state <> 'deleting' order by id`;
  const done: Revocation[] = [];
  for (const { id, name } of bases) {
    const revoke = async () => revokeAttachmentLinks(ctx, await getBase(ctx.db, id, accountId));
    const error = await revoke().then(
      () => null,
      (reason: unknown) => asBasetideError(reason).message,
    );
    done.push({ id, name, error });
  }
  return done;
}

function remaining(options: RemovalOptions, databases: Revocation[], links: Revocation[]): string[] {
  const failed = (all: Revocation[]) => all.filter(({ error }) => error !== null).map(({ name }) => name);
  const passwords = options.rotateCredentials ? failed(databases) : ["all databases"];
  const attachments = options.revokeAttachmentLinks ? failed(links) : ["all bases"];
  return [
    ...(passwords.length > 0 ? [`Database passwords: ${passwords.join(", ")}`] : []),
    ...(attachments.length > 0 ? [`Attachment links: ${attachments.join(", ")}`] : []),
    ...(options.revokeTokens ? [] : ["API tokens that other members have shown them"]),
  ];
}
