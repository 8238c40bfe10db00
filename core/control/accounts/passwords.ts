/**
 * Passwords: their rules and their hashes, in one place for the console, the command line and the demo.
 *
 * Anybody can ask a console to check a password, and each check keeps a core and a thread of the runtime busy. So they
 * wait in a queue and run one at a time, on a thread of a low priority: pages do not wait for sign-ins.
 */
import { Worker } from "node:worker_threads";
import PQueue from "p-queue";
import { BasetideError } from "../../errors";
import type { Done, Work } from "./password-thread";

export const MIN_PASSWORD_LENGTH = 8;
/** argon2 reads it all: without a limit, a long password is a way to keep the process busy. */
export const MAX_PASSWORD_LENGTH = 1000;

/** @throws BasetideError `invalid_request` */
export function checkPassword(password: string): void {
  if (password.length >= MIN_PASSWORD_LENGTH && password.length <= MAX_PASSWORD_LENGTH) return;
  throw new BasetideError(
    "invalid_request",
    `A password has ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
  );
}

/** Each takes about 25 ms: a tenth of a core, and more sign-ins than people make. */
const PER_SECOND = 4;
/** Ten seconds' worth. */
const MAX_WAITING = 40;

const queue = new PQueue({ concurrency: 1, intervalCap: PER_SECOND, interval: 1000 });

/** More passwords wait to be checked than a person would wait for. */
export function isPasswordQueueFull(): boolean {
  return queue.size >= MAX_WAITING;
}

export interface QueueOptions {
  /** It goes before those that are not. */
  isUrgent?: boolean;
}

/** Waits its turn. @returns argon2id, in the PHC string format */
export function hashPassword(password: string, options: QueueOptions = {}): Promise<string> {
  return enqueue({ password }, options) as Promise<string>;
}

/** Waits its turn. */
export function verifyPassword(password: string, hash: string, options: QueueOptions = {}): Promise<boolean> {
  return enqueue({ password, hash }, options) as Promise<boolean>;
}

function enqueue(work: Work, { isUrgent = false }: QueueOptions): Promise<string | boolean> {
  return queue.add(() => onThread(work), { priority: isUrgent ? 1 : 0 });
}

let thread: Worker | undefined;

/** One at a time: the next answer is this work's. */
function onThread(work: Work): Promise<string | boolean> {
  thread ??= startThread();
  const used = thread;
  return new Promise((resolve, reject) => {
    // A process ends without waiting for the thread, but not while somebody waits for an answer.
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
