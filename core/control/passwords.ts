/**
 * Passwords: their rules and their hashes, in one place for the console, the command line and the demo.
 *
 * Anybody can ask a console to check a password, and each check keeps a core and a thread of the runtime busy. So they
 * wait in a queue and run one at a time: pages, which need those threads too, do not wait for sign-ins.
 */
import PQueue from "p-queue";
import { BasetideError } from "../errors";

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

/** The lowest cost that OWASP recommends for argon2id: 19 MiB, 2 passes. Hashes of another cost stay valid. */
const HASH = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
/** Each takes about 25 ms: a fifth of a core, and more sign-ins than people make. */
const PER_SECOND = 8;
/** Ten seconds' worth. */
const MAX_WAITING = 80;

const queue = new PQueue({ concurrency: 1, intervalCap: PER_SECOND, interval: 1000 });

/** More passwords wait to be checked than a person would wait for. */
export function isPasswordQueueFull(): boolean {
  return queue.size >= MAX_WAITING;
}

export interface Turn {
  /** It goes before those that are not. */
  isUrgent?: boolean;
}

/** Waits its turn. @returns argon2id, in the PHC string format */
export function hashPassword(password: string, turn: Turn = {}): Promise<string> {
  return queue.add(() => Bun.password.hash(password, HASH), { priority: turn.isUrgent ? 1 : 0 });
}

/** Waits its turn. */
export function verifyPassword(password: string, hash: string, turn: Turn = {}): Promise<boolean> {
  return queue.add(() => Bun.password.verify(password, hash), { priority: turn.isUrgent ? 1 : 0 });
}
