/** Whether servers of ours offer TLS at the address that customers connect to, as they would find it. */
import { wait } from "../../core/async";
import { offersTls } from "../../core/net";
import { TimedCache } from "./timed-cache";

/** A page does not wait longer: then clients decide for themselves, which works in both cases. */
const PATIENCE_MS = 1000;

const offers = new TimedCache<string | null>({ keptMs: 10 * 60_000, most: 1000 });

/** Returns the `sslmode` for clients: `require` or `disable`; null if the server cannot be reached from here. */
export function offeredSslMode(host: string, port: number): Promise<string | null> {
  return offers.get(`${host} ${port}`, () => ask(host, port));
}

async function ask(host: string, port: number): Promise<string | null> {
  const over = new AbortController();
  try {
    const late = wait(PATIENCE_MS, over.signal).then(() => null);
    late.catch(() => {});
    const offered = await Promise.race([offersTls({ host, port }), late]);
    return offered === null ? null : offered ? "require" : "disable";
  } catch {
    return null;
  } finally {
    over.abort();
  }
}
