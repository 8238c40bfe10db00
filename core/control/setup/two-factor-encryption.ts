/**
 * The encryption of second factors, which the sign-in library does: examines it, and encrypts what a key of
 * SECRET_KEY_PREVIOUS has encrypted again with the current key.
 */
import type { Context } from "../../context";
import { numberedKeys } from "../../secrets";

/** Only the operator's commands need the library: loading it would slow down the start of every process. */
const library = () => import("better-auth/crypto");

/** The purpose of the keys that the library gets (`apps/console/auth/library.ts`). */
const PURPOSE = "sessions";

interface Row {
  id: string;
  secret: string;
  backup_codes: string;
}

interface Count {
  readable: number;
  previous: number;
  unreadable: number;
}

type EncryptionContext = Pick<Context, "db" | "config">;

export async function examineTwoFactors(ctx: EncryptionContext): Promise<Count> {
  const count: Count = { readable: 0, previous: 0, unreadable: 0 };
  const keys = keysOf(ctx);
  for (const row of await rows(ctx)) {
    if ((await opened(keys, row)) === null) count.unreadable += 1;
    else {
      count.readable += 1;
      if (!isCurrent(keys, row)) count.previous += 1;
    }
  }
  return count;
}

/** A row that is changed meanwhile keeps that change. */
export async function rotateTwoFactors(
  ctx: EncryptionContext,
): Promise<{ reencrypted: number; unreadable: number }> {
  const done = { reencrypted: 0, unreadable: 0 };
  const keys = keysOf(ctx);
  for (const row of await rows(ctx)) {
    if (isCurrent(keys, row)) continue;
    const plain = await opened(keys, row);
    if (plain === null) {
      done.unreadable += 1;
      continue;
    }
    const { symmetricEncrypt } = await library();
    const [secret, codes] = await Promise.all(plain.map((data) => symmetricEncrypt({ key: keys, data })));
    const { count } = await ctx.db`
      update two_factors set secret = ${secret!}, backup_codes = ${codes!}
      where id = ${row.id} and secret = ${row.secret} and backup_codes = ${row.backup_codes}`;
    done.reencrypted += count;
  }
  return done;
}

/** Returns the values of a second factor as the keys of `to` encrypt them; null if none of `from` opens them. */
export async function encryptTwoFactor(
  from: Context["config"],
  to: Context["config"],
  [secret, backupCodes]: [string, string],
): Promise<[string, string] | null> {
  const plain = await opened(keysOf({ config: from }), { id: "", secret, backup_codes: backupCodes });
  if (plain === null) return null;
  const { symmetricEncrypt } = await library();
  const key = keysOf({ config: to });
  const [one, other] = await Promise.all(plain.map((data) => symmetricEncrypt({ key, data })));
  return [one!, other!];
}

function keysOf({ config }: Pick<Context, "config">) {
  const all = numberedKeys(config, PURPOSE);
  const keys = new Map(all.map(({ version, value }) => [version, value]));
  return { keys, currentVersion: all[0]!.version };
}

function rows({ db }: EncryptionContext): PromiseLike<Row[]> {
  return db<Row[]>`select id, secret, backup_codes from two_factors order by id`;
}

/** The library stores the number of the key in front of what it encrypts. */
function isCurrent({ currentVersion }: ReturnType<typeof keysOf>, row: Row): boolean {
  const prefix = `$ba$${currentVersion}$`;
  return row.secret.startsWith(prefix) && row.backup_codes.startsWith(prefix);
}

async function opened(keys: ReturnType<typeof keysOf>, row: Row): Promise<string[] | null> {
  const { symmetricDecrypt } = await library();
  try {
    return await Promise.all(
      [row.secret, row.backup_codes].map((data) => symmetricDecrypt({ key: keys, data })),
    );
  } catch {
    // A missing key, or a value that no key opens.
    return null;
  }
}
