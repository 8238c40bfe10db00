/** Feeds for tests: a sandbox, the console that receives its notifications, and leases that a test holds itself. */
import { startConsole } from "../../apps/console/start";
import { type Base, getBase, openApiKey, replicaTarget } from "../../core/control/bases";
import { loadFeed } from "../../core/control/feeds";
import { createSyncHost } from "../../core/control/sync-host";
import { claimEpoch, ensureInstalled, openReplica, takeReadVersion } from "../../core/replica";
import { platformById } from "../../core/source";
import type { AskKind, Reader } from "../../core/sync/engine";
import { SchemaTracker, syncBase } from "../../core/sync/engine";
import { compareTable, type LiveFeed, openFeed } from "../../core/sync/modes/live";
import { BaseCache, ReadVersionSource } from "../../core/sync/state";
import { type Fleet, startFleet } from "./fleet";
import { freePort } from "./free-port";
import { unlimitedLimiter } from "./unlimited-limiter";

export interface FeedStack extends AsyncDisposable {
  fleet: Fleet;
  /** Connects a base with `records` records, in live mode. */
  connect(records?: number): Promise<LiveBase>;
}

export interface LiveBase {
  base: Base;
  sourceId: string;
  tableId: string;
  /** A worker that has just leased the base and has empty caches. */
  worker(): TestWorker;
  kept(): ReturnType<typeof loadFeed>;
  /** The base as it is now. */
  now(): Promise<Base>;
  /** The base's webhooks at the source. */
  webhooks(): ReturnType<Fleet["sandbox"]["control"]["webhooks"]["list"]>;
  create(name: string): string;
}

export interface TestWorker {
  cache: BaseCache;
  /** Requests that were sent, by purpose. */
  asked: Partial<Record<AskKind, number>>;
  /** Opens the feed, as each lease does. @throws if the base has none */
  open(): Promise<LiveFeed>;
  /** The same, or null. */
  tryOpen(): Promise<LiveFeed | null>;
  reader(): Promise<Reader>;
  /** Sweeps everything into the replica, and returns a comparison with the source. */
  swept(): Promise<{
    sweep: () => Promise<void>;
    /** @returns the records that differed */
    compare: (feed: LiveFeed, options?: { isPending?: () => boolean }) => Promise<string[]>;
  }>;
}

export async function startFeedStack(env: Record<string, string> = {}): Promise<FeedStack> {
  await using releases = new AsyncDisposableStack();
  const port = await freePort();
  const address = { CONSOLE_PORT: String(port), CONSOLE_URL: `http://127.0.0.1:${port}` };
  const fleet = releases.use(
    await startFleet({
      workers: 0,
      sandbox: { settings: { rateLimitOff: true } },
      env: { ...address, ...env },
    }),
  );
  const console = await startConsole(fleet.ctx);
  releases.defer(() => console.stop());
  const kept = releases.move();
  return {
    fleet,
    connect: (records = 3) => connect(fleet, kept, records),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function connect(fleet: Fleet, releases: AsyncDisposableStack, records: number): Promise<LiveBase> {
  const { control } = fleet.sandbox;
  const fields = [
    { name: "Name", type: "singleLineText" },
    { name: "Told", type: "formula", options: { formula: "'told of ' & {Name}" } },
  ];
  const rows = Array.from({ length: records }, (_, index) => ({ fields: { Name: `N${index}` } }));
  const sourceId = control.createBase({ name: "Live", tables: [{ name: "Things", fields, records: rows }] });
  const tableId = control.dump(sourceId).tables[0]!.id;
  const base = await fleet.connect(sourceId, { live: true });
  return {
    base,
    sourceId,
    tableId,
    worker: () => testWorker(fleet, releases, base.id),
    kept: () => loadFeed(fleet.ctx.db, base.id),
    now: () => getBase(fleet.ctx.db, base.id),
    webhooks: () => control.webhooks.list(sourceId),
    create: (name) => control.createRecords(sourceId, tableId, [{ fields: { Name: name } }])[0]!,
  };
}

function testWorker({ ctx }: Fleet, releases: AsyncDisposableStack, baseId: string): TestWorker {
  const host = createSyncHost(ctx);
  const cache = new BaseCache(1);
  const asked: TestWorker["asked"] = {};
  const { signal } = new AbortController();
  async function reader(): Promise<Reader> {
    const base = await getBase(ctx.db, baseId);
    const platform = platformById(ctx.platforms, base.platform);
    let readVersion = 0;
    return {
      connection: platform.connect(await openApiKey(ctx, base), cache.sourceClock),
      sourceBaseId: base.sourceBaseId,
      limiter: unlimitedLimiter(),
      quotaKey: base.sourceBaseId,
      share: () => 5,
      readVersions: new ReadVersionSource(async () => ++readVersion),
      log: ctx.log,
      stop: signal,
      kill: signal,
      counts: { requests: 0, waitMs: 0 },
      onRequest: (kind) => {
        asked[kind] = (asked[kind] ?? 0) + 1;
      },
    };
  }
  const tryOpen = async () =>
    openFeed({ ...ctx, host }, await getBase(ctx.db, baseId), await reader(), cache);
  return {
    cache,
    asked,
    reader,
    tryOpen,
    async open() {
      const feed = await tryOpen();
      if (!feed) throw new Error("there is no feed");
      return feed;
    },
    async swept() {
      const base = await getBase(ctx.db, baseId);
      const target = await replicaTarget(ctx, base);
      const replica = openReplica(target);
      releases.defer(() => replica.close());
      await ensureInstalled(replica, target);
      const epoch = await claimEpoch(replica);
      const own = {
        ...(await reader()),
        readVersions: new ReadVersionSource(() => takeReadVersion(replica)),
      };
      const input = { base, replica, epoch, cache, reader: own, schemaPollMs: 3600_000 };
      const sweep = async () => {
        const report = await syncBase({ ...input, isForced: false, onProgress: () => {} });
        if (report.error) throw report.error;
      };
      await sweep();
      const schemaTracker = await SchemaTracker.open(input);
      const { modifiedSince } = platformById(ctx.platforms, base.platform);
      return {
        sweep,
        async compare(feed, { isPending = () => false } = {}) {
          const found: string[] = [];
          const onDifference = (_: string, ids: string[]) => void found.push(...ids);
          const replica = { ...input, schemaTracker, isPending, onDifference };
          await compareTable({ ...replica, feed, modifiedSince: modifiedSince! });
          return found;
        },
      };
    },
  };
}
