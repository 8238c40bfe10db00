/**
 * A fleet whose bases are in live mode: a console that receives notifications, and a check that a base's feed is read
 * to its end.
 */

import { startConsole } from "../../apps/console/start";
import type { SandboxHandle } from "../../apps/sandbox/server";
import { type Base, getBase } from "../../core/control/bases";
import { loadFeed } from "../../core/control/feeds";
import { type Fleet, type FleetOptions, type FleetSource, startFleet } from "./fleet";
import { freePort } from "./free-port";
import { slowness } from "./machine-speed";
import { until } from "./poll";

export async function startLiveFleet<Source extends FleetSource = SandboxHandle>(
  options: FleetOptions<Source> = {},
): Promise<Fleet<Source>> {
  await using releases = new AsyncDisposableStack();
  const port = await freePort();
  const address = { CONSOLE_PORT: String(port), CONSOLE_URL: `http://127.0.0.1:${port}` };
  const fleet = releases.use(await startFleet({ ...options, env: { ...address, ...options.env } }));
  const console = await startConsole(fleet.ctx);
  releases.defer(() => console.stop());
  const kept = releases.move();
  return { ...fleet, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** Connects a base, and waits until it is live and its feed has no gap. */
export async function connectLive(
  fleet: Fleet,
  sourceBaseId: string,
  timeoutMs = 60_000,
  apiKey?: string,
): Promise<Base> {
  const { id } = await fleet.connect(sourceBaseId, { turbo: true, live: true }, apiKey);
  return until(
    async () => {
      const base = await getBase(fleet.ctx.db, id);
      return base.live?.state === "on" && base.live.readAt && base.sync && !base.live.gapSince && base;
    },
    { what: `${id} is live`, timeoutMs },
  );
}

/**
 * Waits until the feed has been read to its end: its durable cursor is the source's own, and no gap is open. Everything
 * that was changed before this call is then in SQL, whether a sweep has run or not.
 */
export async function readOut(
  fleet: Fleet,
  base: Base,
  timeoutMs = Math.round(30_000 * slowness()),
): Promise<void> {
  const isReadOut = async () => {
    const kept = await loadFeed(fleet.ctx.db, base.id);
    const webhook = webhookOf(fleet, base, kept?.webhookId);
    return kept?.gapSince === null && webhook !== undefined && kept.cursor === webhook.cursorForNextPayload;
  };
  const describe = async () => {
    const { webhookId, cursor, gapSince } = (await loadFeed(fleet.ctx.db, base.id)) ?? {};
    return { webhookId, cursor, gapSince, hooks: fleet.sandbox.control.webhooks.list(base.sourceBaseId) };
  };
  try {
    await until(isReadOut, { what: `the feed of ${base.id} is read to its end`, timeoutMs });
  } catch (cause) {
    throw new Error(`not read out: ${Bun.inspect(await describe())}`, { cause });
  }
}

function webhookOf({ sandbox }: Fleet, { sourceBaseId }: Base, id: string | null | undefined) {
  return sandbox.control.webhooks.list(sourceBaseId).find((webhook) => webhook.id === id);
}
