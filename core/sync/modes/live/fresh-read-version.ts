/** A ticket for a request that waits for the quota: taken again until the request goes out, as an older one loses more. */
import type { Reader } from "../../engine";

/** How old it may be when the request goes out, ms, and what taking one takes. */
const REFRESH_MS = 100;

export interface FreshTicket extends Disposable {
  /** The reader to ask with. */
  reader: Reader;
  /** Taken shortly before the reader's first request went out. */
  readonly value: number;
}

/** @param first a ticket that was taken before */
export function freshTicket(reader: Reader, first: number): FreshTicket {
  let value = first;
  let isSent = false;
  const refresh = setInterval(() => {
    reader.tickets.renew();
    reader.tickets.current().then(
      (ticket) => {
        if (!isSent) value = Math.max(value, ticket);
      },
      // The one at hand is good.
      () => {},
    );
  }, REFRESH_MS);
  return {
    reader: {
      ...reader,
      onRequest(kind) {
        isSent = true;
        clearInterval(refresh);
        reader.onRequest?.(kind);
      },
    },
    get value() {
      return value;
    },
    [Symbol.dispose]: () => clearInterval(refresh),
  };
}
