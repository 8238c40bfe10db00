/**
 * Passwords: their rules and their hashes, for the console, the command line and the demo.
 *
 * Anyone can make a console check a password, and each check occupies a core and a thread of the runtime. Checks
 * therefore wait in a queue and run one at a time, on a low-priority thread, so that sign-ins do not delay pages.
 */
import { Worker } from "node:worker_threads";
import PQueue from "p-queue";
import { appPath } from "../../app-path";
import { invalid } from "../../errors";
import { type BudgetShare, SharedBudget } from "../../http";
import { COMMON_PASSWORD, isCommonPassword } from "./common-passwords";
import type { Done, Work } from "./password-thread";

export const MIN_PASSWORD_LENGTH = 8;
/** Argon2 reads all of it: without a limit, long passwords could keep the process busy. */
export const MAX_PASSWORD_LENGTH = 1000;

/** @throws BasetideError `invalid_request` */
export function checkPassword(password: string, email: string): void {
  if (password.length < MIN_PASSWORD_LENGTH || password.length > MAX_PASSWORD_LENGTH) {
    throw invalid(`A password has ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`);
  }
  if (isCommonPassword(password, email)) throw invalid(COMMON_PASSWORD);
}

/** Each takes about 25 ms: together a tenth of a core, and more sign-ins than people need. */
const PER_SECOND = 4;
/** Those that wait: the work of ten seconds, of which one network, or one user in a network, may cause one. */
const WAITING = { most: 40, mostPer: { network: PER_SECOND } };

const queue = new PQueue({ concurrency: 1, intervalCap: PER_SECOND, interval: 1000 });
const ofStrangers = new SharedBudget<never>(WAITING);
const ofUsers = new SharedBudget<never>(WAITING);

interface QueueOptions {
  /** Goes before those that are not urgent. */
  isUrgent?: boolean;
  place?: PasswordPlace;
}

/** A client's place in the queue. */
export class PasswordPlace implements Disposable {
  readonly #share: BudgetShare;
  readonly #gaveWay = new AbortController();
  /** Aborted when it has given way to a client of a network with fewer places. */
  readonly gaveWay = this.#gaveWay.signal;

  private constructor(network: string, user: string | undefined) {
    const [places, owner] =
      user === undefined ? [ofStrangers, network] : [ofUsers, `${network} ${user.replace(/\s/g, "")}`];
    this.#share = places.open({ network: owner }, { giveWay: () => this.#gaveWay.abort() });
  }

  /**
   * @param user whom the client is known to be, which has places apart from strangers
   * @returns undefined if more passwords wait to be checked than a person would wait for
   */
  static take(network: string, user?: string): PasswordPlace | undefined {
    const place = new PasswordPlace(network, user);
    return place.#share.take(1) ? place : undefined;
  }

  /** The check begins. */
  keep(): void {
    this.#share.keep();
  }

  [Symbol.dispose](): void {
    this.#share[Symbol.dispose]();
  }
}

/** Hashes a password in its turn. @returns argon2id, in the PHC string format. @throws the reason of `gaveWay` */
export function hashPassword(password: string, options: QueueOptions = {}): Promise<string> {
  return enqueue({ password }, options) as Promise<string>;
}

/** Verifies a password in its turn. @throws the reason of `gaveWay` */
export function verifyPassword(password: string, hash: string, options: QueueOptions = {}): Promise<boolean> {
  return enqueue({ password, hash }, options) as Promise<boolean>;
}

function enqueue(work: Work, { isUrgent = false, place }: QueueOptions): Promise<string | boolean> {
  const begin = () => {
    place?.keep();
    return onThread(work);
  };
  return queue.add(begin, { priority: isUrgent ? 1 : 0, ...(place && { signal: place.gaveWay }) });
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
  const started = new Worker(appPath("core/control/accounts/password-thread.ts"));
  started.unref();
  return started;
}
