/** Whether servers of ours offer TLS at the address that customers connect to, as they would find it. */
import { wait } from "../../core/async";
import { offersTls } from "../../core/net";

const KEPT_MS = 10 * 60_000;
/** A page does not wait longer: then clients decide for themselves, which works in both cases. */
const PATIENCE_MS = 1000;

export class TlsOffers {
  readonly #known = new Map<string, { mode: Promise<string | null>; at: number }>();

  /** Returns the `sslmode` for clients: `require` or `disable`; null if the server cannot be reached from here. */
  sslMode(host: string, port: number): Promise<string | null> {
    const address = `${host} ${port}`;
    const known = this.#known.get(address);
    if (known && Date.now() - known.at < KEPT_MS) return known.mode;
    const mode = ask(host, port);
    this.#known.set(address, { mode, at: Date.now() });
    void mode.then((answer) => {
      if (answer === null) this.#known.delete(address);
    });
    return mode;
  }
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
