/** Turns SQL writes of a base on and off in its replica, and keeps the secret of its triggers. */
import type { Context } from "../../context";
import { BasetideError } from "../../errors";
import { isId } from "../../ids";
import { installWrites, type ReplicaTarget, removeWrites } from "../../replica";
import { newSecret } from "../../secrets";
import type { Base } from "./base-row";

type WritesContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/**
 * Installs SQL writes in the base's replica, and checks that its server reaches the endpoint; or removes them.
 *
 * @throws BasetideError `conflict` with what is missing and its remedy; `replica_busy`, `replica_unavailable`
 */
export async function switchSqlWrites(
  ctx: WritesContext,
  base: Base,
  target: ReplicaTarget & { role?: string | undefined },
  isOn: boolean,
): Promise<void> {
  if (!isOn) return base.settings.sqlWrites ? removeWrites(target) : undefined;
  const { writePort: port, writeHost, writeTlsCertificate, proxyUrl } = ctx.config;
  if (port === undefined)
    throw new BasetideError(
      "conflict",
      "This installation has no endpoint for SQL writes. The operator turns it on with WRITE_PORT",
    );
  const host = writeHost ?? new URL(proxyUrl).hostname.replace(/^\[|\]$/g, "");
  const secret = await ensureSecret(ctx, base.id);
  await installWrites(target, {
    host,
    port,
    user: base.id,
    secret,
    isTls: writeTlsCertificate !== undefined,
  });
}

async function ensureSecret({ db, secrets }: WritesContext, baseId: string): Promise<string> {
  const made = secrets.encrypt(newSecret(), secretContext(baseId));
  const [row] = await db<{ encrypted: string }[]>`
    update bases set encrypted_write_secret = coalesce(encrypted_write_secret, ${made})
    where id = ${baseId} and state <> 'deleting' returning encrypted_write_secret as encrypted`;
  if (!row) throw new BasetideError("conflict", "The base is being deleted");
  return secrets.decrypt(row.encrypted, secretContext(baseId));
}

/** Returns the secret of the base's triggers; undefined if they were never installed, or there is no such base. */
export async function writeSecretOf(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  baseId: string,
): Promise<string | undefined> {
  if (!isId("base", baseId)) return undefined;
  const [row] = await db<{ encrypted: string }[]>`
    select encrypted_write_secret as encrypted from bases where id = ${baseId} and encrypted_write_secret is not null`;
  return row && secrets.decrypt(row.encrypted, secretContext(baseId));
}

function secretContext(baseId: string): string {
  return `bases.write_secret:${baseId}`;
}
