/**
 * The thread that hashes and verifies passwords, one message at a time; started by passwords.ts.
 *
 * It has a low priority: a check takes a core for 25 ms, and what a guest makes us compute must not hold up what
 * customers wait for. Only Linux has a priority for each thread; elsewhere it would be the whole process's.
 */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";

/** The lowest cost that OWASP recommends for argon2id: 19 MiB, 2 passes. Hashes of another cost stay valid. */
const HASH = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
/** On a busy machine it gets a third of what another thread gets, and a check ends all the same. */
const NICE = 5;

/** With `hash`, whether the password has it; without, the password's hash. */
export interface Work {
  password: string;
  hash?: string;
}

export type Done = { result: string | boolean } | { error: string };

if (process.platform === "linux") setPriority(NICE);

parentPort?.on("message", (asked: Work) => parentPort?.postMessage(work(asked)));

function work({ password, hash }: Work): Done {
  try {
    const result =
      hash === undefined ? Bun.password.hashSync(password, HASH) : Bun.password.verifySync(password, hash);
    return { result };
  } catch (error) {
    return { error: String(error) };
  }
}
