/** A read version for a request that waits for the quota: taken again until the request goes out, as an older one loses more. */
import type { Reader } from "../../engine";

/** How old it may be when the request goes out, ms, and what taking one takes. */
const REFRESH_MS = 100;

export interface FreshReadVersion extends Disposable {
  /** The reader to ask with. */
  reader: Reader;
  /** Taken shortly before the reader's first request went out. */
  readonly value: number;
}

/** @param first a read version that was taken before */
export function freshReadVersion(reader: Reader, first: number): FreshReadVersion {
  let value = first;
  let isSent = false;
  const refresh = setInterval(() => {
    reader.readVersions.renew();
    reader.readVersions.current().then(
      (readVersion) => {
        if (!isSent) value = Math.max(value, readVersion);
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
