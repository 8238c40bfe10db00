/**
 * Pauses customers' roles: a paused role may not connect.
 *
 * The pause is stored in the role itself, as its connection limit and its comment, neither of which it may change. The
 * next process that checks ends an expired pause, by the server's clock. The comment stays, so that the next pause is
 * longer.
 */
import type { Sql } from "postgres";
import { quoteIdent } from "./naming";
import { overRaces } from "./provision";

const COMMENT = /^basetide: pause (\d+), until (\S+)$/;
const MAX_MINUTES = 60;
/** A pause that ended longer ago than this does not make the next one longer. */
const FORGOTTEN_AFTER_MS = 24 * 3600_000;

interface Pause {
  role: string;
  until: Date;
  /** Number of sessions that the pause ended. */
  ended: number;
}

/**
 * Ends all sessions of the role and forbids it to connect for 1 minute; consecutive pauses double, up to 60 minutes.
 *
 * @returns null for a dropped role
 */
export async function pauseRole(admin: Sql, role: string): Promise<Pause | null> {
  const name = quoteIdent(role);
  const [found] = await admin<{ comment: string | null; now: Date }[]>`
    select shobj_description(oid, 'pg_authid') as comment, now() as now from pg_roles where rolname = ${role}`;
  if (!found) return null;
  const { comment: previous, now } = found;
  const earlier = readPause(previous);
  const isForgotten = !earlier || now.getTime() - earlier.until.getTime() > FORGOTTEN_AFTER_MS;
  const number = isForgotten ? 1 : earlier.number + 1;
  const minutes = Math.min(2 ** (number - 1), MAX_MINUTES);
  const until = new Date(now.getTime() + minutes * 60_000);
  const comment = `basetide: pause ${number}, until ${until.toISOString()}`;
  // One transaction: a limit without its comment would never be lifted.
  await overRaces(() =>
    admin.unsafe(`alter role ${name} connection limit 0; comment on role ${name} is '${comment}'`),
  );
  const sessions =
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role}`;
  return { role, until, ended: sessions.length };
}

/**
 * Lets roles whose pause is over connect again.
 *
 * @param limits connections by role
 * @returns the names of those roles
 */
export async function endPauses(admin: Sql, limits: Map<string, number>): Promise<string[]> {
  const paused = await admin<{ role: string; comment: string | null; now: Date }[]>`
    select rolname::text as role, shobj_description(oid, 'pg_authid') as comment, now() as now
    from pg_roles where rolconnlimit = 0 and rolname = any (${[...limits.keys()]}::text[])`;
  const over = paused.filter(({ comment, now }) => {
    const pause = readPause(comment);
    return pause && pause.until <= now;
  });
  for (const { role } of over) {
    await overRaces(() =>
      admin.unsafe(`alter role ${quoteIdent(role)} connection limit ${limits.get(role)!}`),
    );
  }
  return over.map(({ role }) => role);
}

/** Returns the time until which the role is paused; null if it is not. */
export async function pausedUntil(admin: Sql, role: string): Promise<Date | null> {
  const [row] = await admin<{ comment: string | null }[]>`
    select shobj_description(oid, 'pg_authid') as comment from pg_roles
    where rolname = ${role} and rolconnlimit = 0`;
  return readPause(row?.comment ?? null)?.until ?? null;
}

function readPause(comment: string | null): { number: number; until: Date } | null {
  const [, number, until] = COMMENT.exec(comment ?? "") ?? [];
  if (number === undefined || Number.isNaN(Date.parse(until!))) return null;
  return { number: Number(number), until: new Date(until!) };
}
