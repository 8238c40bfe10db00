/** Limits how many queries of one account this process runs at once, so that one account cannot use all connections. */
import { BasetideError } from "../errors";

const PER_ACCOUNT = 2;

const running = new Map<string, number>();

/** @throws BasetideError `conflict` if as many are running as may */
export async function withRunSlot<T>(accountId: string, work: () => Promise<T>): Promise<T> {
  const count = running.get(accountId) ?? 0;
  if (count >= PER_ACCOUNT) {
    throw new BasetideError(
      "conflict",
      `${PER_ACCOUNT} queries of this account are running. Wait until one ends, or cancel it`,
    );
  }
  running.set(accountId, count + 1);
  try {
    return await work();
  } finally {
    const left = running.get(accountId)! - 1;
    if (left === 0) running.delete(accountId);
    else running.set(accountId, left);
  }
}
