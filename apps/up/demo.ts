/**
 * Creates the demo: an account with every base of the sandbox connected to it. A restart finds the existing one.
 *
 * Its password and token are stored in `demo.json` of the data folder (mode 0600), since the control plane has only
 * hashes.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Account,
  accountByEmail,
  authenticate,
  createAccount,
  createToken,
} from "../../core/control/accounts";
import { createBase, listBases, listSourceBases, type ManagementContext } from "../../core/control/bases";
import { databaseCredentials, getDatabase } from "../../core/control/placement";
import { isBasetideError } from "../../core/errors";
import { proxied } from "../../core/source";

const EMAIL = "demo@example.org";
/** The platform that the sandbox simulates. */
const PLATFORM = proxied.id;

export interface Demo {
  email: string;
  /** Unknown if `demo.json` was lost. */
  password: string | undefined;
  token: string;
  bases: { name: string; sourceBaseId: string; psql: string }[];
}

type Login = Pick<Demo, "password" | "token">;

/** Creates the missing parts of the demo. `apiKey` can read the sandbox's bases. */
export async function connectDemo(ctx: ManagementContext, apiKey: string): Promise<Demo> {
  const { account, login } = await openAccount(ctx);
  const connected = new Set((await listBases(ctx.db, account.id)).map((base) => base.sourceBaseId));
  for (const { id } of await listSourceBases(ctx, PLATFORM, apiKey)) {
    if (connected.has(id)) continue;
    await createBase(ctx, account.id, { platform: PLATFORM, apiKey, sourceBaseId: id });
  }
  const bases = (await listBases(ctx.db, account.id)).map(async (base) => {
    const database = await getDatabase(ctx.db, base.database.id);
    const { name, sourceBaseId } = base;
    return { name, sourceBaseId, psql: (await databaseCredentials(ctx, database)).psql };
  });
  return { email: EMAIL, ...login, bases: await Promise.all(bases) };
}

async function openAccount(ctx: ManagementContext): Promise<{ account: Account; login: Login }> {
  const path = join(ctx.config.dataDir, "demo.json");
  const kept = readLogin(path);
  if (kept) {
    try {
      return { account: await authenticate(ctx.db, `Bearer ${kept.token}`), login: kept };
    } catch (error) {
      if (!isBasetideError(error, "unauthorized")) throw error;
    }
  }
  const password = randomBytes(12).toString("base64url");
  const { account, isNew } = await findOrCreate(ctx, password);
  const token = await createToken(ctx.db, account.id, "demo");
  const login = { token, password: isNew ? password : undefined };
  rmSync(path, { force: true });
  writeFileSync(path, `${JSON.stringify(login)}\n`, { mode: 0o600, flag: "wx" });
  return { account, login };
}

async function findOrCreate(
  ctx: ManagementContext,
  password: string,
): Promise<{ account: Account; isNew: boolean }> {
  try {
    return { account: await accountByEmail(ctx.db, EMAIL), isNew: false };
  } catch (error) {
    if (!isBasetideError(error, "not_found")) throw error;
    return { account: await createAccount(ctx.db, { email: EMAIL, password }), isNew: true };
  }
}

function readLogin(path: string): Login | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Login;
  } catch {
    // Absent, or cut short by a crash: a new one is created.
    return undefined;
  }
}
