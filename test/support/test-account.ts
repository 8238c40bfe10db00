/** Creates accounts for tests, as many and as fast as they like: a process hashes four passwords per second. */
import type { Db } from "../../core/context";
import { type Account, createAccount } from "../../core/control/accounts";

/** Valid at sign-in, as any hash of an earlier cost. */
const CHEAPEST = { algorithm: "argon2id", memoryCost: 8, timeCost: 1 } as const;

/** Creates an account and its owner. Its password, `correct horse`, was not hashed as the service does. */
export function testAccount(db: Db, account: { email: string; isOperator?: boolean }): Promise<Account> {
  return createAccount(db, { ...account, password: "correct horse" }, undefined, (password) =>
    Bun.password.hash(password, CHEAPEST),
  );
}
