/** The input of a sync engine on a real replica, without a control plane and without a rate limit. */
import type { Base } from "../../core/control/bases";
import { createLogger } from "../../core/log";
import { type Replica, takeReadVersion } from "../../core/replica";
import type { SourceConnection } from "../../core/source";
import type { SyncInput } from "../../core/sync/engine";
import { type BaseCache, ReadVersionSource } from "../../core/sync/state";

interface Parts {
  replica: Replica;
  epoch: number;
  cache: BaseCache;
  connection: SourceConnection;
  settings?: Partial<Base["settings"]>;
  /** Called with each pause that the source requests, ms. */
  onBlock?: (ms: number) => void;
}

export function engineInput({ connection, settings = {}, onBlock, ...of }: Parts): SyncInput {
  const stop = new AbortController().signal;
  return {
    ...of,
    base: {
      sync: null,
      clockAheadMs: 0,
      isReadOnly: false,
      tables: [],
      settings: {
        turbo: false,
        rapid: false,
        live: false,
        paused: false,
        linkedRecordsAsText: false,
        lookupsAsText: false,
        ...settings,
      },
    } as unknown as Base,
    schemaPollMs: 0,
    isForced: false,
    onProgress: () => {},
    reader: {
      connection,
      sourceBaseId: "app1",
      limiter: {
        acquireSync: async () => undefined,
        acquireClient: async () => undefined,
        acquireUnproven: async () => undefined,
        countServed: () => {},
        block: async (_key, ms) => onBlock?.(ms),
        close: async () => {},
      },
      quotaKey: "fake:app1",
      share: () => 3,
      readVersions: new ReadVersionSource(() => takeReadVersion(of.replica)),
      log: createLogger("silent", "test"),
      stop,
      kill: stop,
    },
  };
}
