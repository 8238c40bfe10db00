/** Turns SQL writes of a base on and off in its replica, and keeps the secret of its triggers. */
import type { Context } from "../../context";
import { BasetideError, conflict, isBasetideError } from "../../errors";
import { isId } from "../../ids";
import { installWrites, type ReplicaTarget, removeWrites, writesVersion } from "../../replica";
import { newSecret } from "../../secrets";
import type { Base } from "./base-row";
import type { BaseSettings } from "./settings";

/** Sent to proxies when the outboxes that they read may be others. */
export const OUTBOX_CHANNEL = "basetide_outboxes";
const QUEUED_INSTEAD =
  "Where it cannot, turn on `sql_writes_queued`, too: writes are then asynchronous, and need neither dblink nor a connection to Basetide";

type WritesContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/**
 * Installs SQL writes in the base's replica, and checks that its server reaches the endpoint, unless they are queued; or
 * removes them.
 *
 * @throws BasetideError `conflict` with what is missing and its remedy; `replica_busy`, `replica_unavailable`
 */
export async function switchSqlWrites(
  ctx: WritesContext,
  base: Base,
  target: ReplicaTarget & { role?: string | undefined },
  { sqlWrites, sqlWritesQueued }: Pick<BaseSettings, "sqlWrites" | "sqlWritesQueued">,
): Promise<void> {
  if (!sqlWrites) return base.settings.sqlWrites ? removeWrites(target) : undefined;
  if (sqlWritesQueued) {
    // Before there is one: it must have a reader.
    await ctx.db`update bases set has_outbox = true where id = ${base.id} and not has_outbox`;
    return installWrites(target, "queued");
  }
  const endpoint = endpointOf(ctx);
  if (!endpoint)
    throw conflict(
      `This installation has no endpoint for SQL writes. The operator turns it on with WRITE_PORT. ${QUEUED_INSTEAD}`,
    );
  const secret = await ensureSecret(ctx, base.id);
  await installWrites(target, { ...endpoint, user: base.id, secret }).catch((error: unknown) => {
    if (!isBasetideError(error, "conflict")) throw error;
    throw new BasetideError("conflict", `${error.message}. ${QUEUED_INSTEAD}`, { cause: error });
  });
}

/** Undefined: there is none. */
function endpointOf({ config }: Pick<Context, "config">) {
  const { writePort: port, writeHost, writeTlsCertificate, proxyUrl } = config;
  if (port === undefined) return undefined;
  const host = writeHost ?? new URL(proxyUrl).hostname.replace(/^\[|\]$/g, "");
  return { host, port, isTls: writeTlsCertificate !== undefined };
}

/** Returns what `bases.sql_writes_installed` is after `switchSqlWrites`; null if writes are off. */
export function installedWrites(
  ctx: Pick<Context, "config">,
  { sqlWrites, sqlWritesQueued }: Pick<BaseSettings, "sqlWrites" | "sqlWritesQueued">,
): string | null {
  const endpoint = sqlWritesQueued ? "queued" : endpointOf(ctx);
  return sqlWrites && endpoint ? writesVersion(endpoint) : null;
}

async function ensureSecret({ db, secrets }: WritesContext, baseId: string): Promise<string> {
  const made = secrets.encrypt(newSecret(), `bases.write_secret:${baseId}`);
  const [row] = await db<{ encrypted: string }[]>`
    update bases set encrypted_write_secret = coalesce(encrypted_write_secret, ${made})
    where id = ${baseId} and state <> 'deleting' returning encrypted_write_secret as encrypted`;
  if (!row) throw conflict("The base is being deleted");
  return secrets.decrypt(row.encrypted, `bases.write_secret:${baseId}`);
}

/** Returns the account and the secret of the base's triggers; undefined if they were never installed, or there is no such base. */
export async function writeAccessOf(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  baseId: string,
): Promise<{ accountId: string; secret: string } | undefined> {
  if (!isId("base", baseId)) return undefined;
  const [row] = await db<{ account_id: string; encrypted: string }[]>`
    select account_id, encrypted_write_secret as encrypted from bases
    where id = ${baseId} and encrypted_write_secret is not null`;
  return (
    row && {
      accountId: row.account_id,
      secret: secrets.decrypt(row.encrypted, `bases.write_secret:${baseId}`),
    }
  );
}
