/**
 * Passwords: their rules and their hashes, for the console, the command line and the demo.
 *
 * Anyone can make a console check a password, and each check occupies a core and a thread of the runtime. Checks
 * therefore wait in a queue and run one at a time, on a low-priority thread, so that sign-ins do not delay pages.
 */
import { Worker } from "node:worker_threads";
import PQueue from "p-queue";
import { BasetideError } from "../../errors";
import type { Done, Work } from "./password-thread";

export const MIN_PASSWORD_LENGTH = 8;
/** Argon2 reads all of it: without a limit, long passwords could keep the process busy. */
export const MAX_PASSWORD_LENGTH = 1000;

/** @throws BasetideError `invalid_request` */
export function checkPassword(password: string): void {
  if (password.length >= MIN_PASSWORD_LENGTH && password.length <= MAX_PASSWORD_LENGTH) return;
  throw new BasetideError(
    "invalid_request",
    `A password has ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
  );
}

/** Each takes about 25 ms: together a tenth of a core, and more sign-ins than people need. */
const PER_SECOND = 4;
/** The work of ten seconds. */
const MAX_WAITING = 40;

const queue = new PQueue({ concurrency: 1, intervalCap: PER_SECOND, interval: 1000 });

/** Whether more passwords wait to be checked than a person would wait for. */
export function isPasswordQueueFull(): boolean {
  return queue.size >= MAX_WAITING;
}

interface QueueOptions {
  /** Goes before those that are not urgent. */
  isUrgent?: boolean;
}

/** Hashes a password in its turn. @returns argon2id, in the PHC string format */
export function hashPassword(password: string, options: QueueOptions = {}): Promise<string> {
  return enqueue({ password }, options) as Promise<string>;
}

/** Verifies a password in its turn. */
export function verifyPassword(password: string, hash: string, options: QueueOptions = {}): Promise<boolean> {
  return enqueue({ password, hash }, options) as Promise<boolean>;
}

function enqueue(work: Work, { isUrgent = false }: QueueOptions): Promise<string | boolean> {
  return queue.add(() => onThread(work), { priority: isUrgent ? 1 : 0 });
}

let thread: Worker | undefined;

/** Runs one piece of work at a time, so that the next answer belongs to it. */
function onThread(work: Work): Promise<string | boolean> {
  thread ??= startThread();
  const used = thread;
  return new Promise((resolve, reject) => {
    // The thread keeps the process alive only while an answer is awaited.
    used.ref();
    const settle = () => {
      used.unref();
      used.off("message", onMessage);
      used.off("error", onError);
    };
    const onMessage = (done: Done) => {
      settle();
      if ("error" in done) reject(new Error(done.error));
      else resolve(done.result);
    };
    const onError = (error: Error) => {
      settle();
      thread = undefined;
      reject(error);
    };
    used.on("message", onMessage);
    used.on("error", onError);
    used.postMessage(work);
  });
}

function startThread(): Worker {
  const started = new Worker(new URL("./password-thread.ts", import.meta.url));
  started.unref();
  return started;
}
