/**
 * A read version for a request that waits for the quota: taken again until the request is sent, because an older one
 * loses more often.
 */
import type { Reader } from "../../engine";

/**
 * How often it is taken again, ms. When the request is sent, it is at most this old, plus the time that taking one
 * takes.
 */
const REFRESH_MS = 100;

/** @param first a read version that was taken before */
export function freshReadVersion(reader: Reader, first: number) {
  let value = first;
  let isSent = false;
  const refresh = setInterval(() => {
    reader.readVersions.renew();
    reader.readVersions.current().then(
      (readVersion) => {
        if (!isSent) value = Math.max(value, readVersion);
      },
      // The previous one is still valid.
      () => {},
    );
  }, REFRESH_MS);
  return {
    /** The reader to send the request with. */
    reader: {
      ...reader,
      onRequest(kind) {
        isSent = true;
        clearInterval(refresh);
        reader.onRequest?.(kind);
      },
    } satisfies Reader,
    /** Taken shortly before the reader's first request was sent. */
    get value() {
      return value;
    },
    [Symbol.dispose]: () => clearInterval(refresh),
  };
}
