/**
 * The thread that hashes and verifies passwords, one message at a time; started by passwords.ts.
 *
 * It runs at a low priority: a check takes a core for 25 ms, and sign-in attempts of strangers must not delay
 * customers' requests. Only Linux has priorities per thread; elsewhere the priority would be that of the whole
 * process.
 */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";

/** The lowest cost that OWASP recommends for argon2id: 19 MiB, 2 passes. Hashes with another cost remain valid. */
const HASH = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
/** On a busy machine it gets a third of the CPU time of another thread, so a check still ends. */
const NICE = 5;

/** With `hash`, checks whether it is the hash of the password; without, asks for the password's hash. */
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
