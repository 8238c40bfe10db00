/**
 * Requires that every proxy reaches the control plane. One that is cut off does not learn that a base is moving, and
 * serves it on its own.
 */
import { wait } from "../../async";
import { conflict } from "../../errors";
import type { PlaneContext } from "./control-plane";

/** A busy proxy's heartbeat may be this late, ms. */
const LATE_MS = 15_000;
const POLL_MS = 250;

/** @throws BasetideError `conflict` if a proxy stays silent */
export async function requireProxies({ db }: PlaneContext): Promise<void> {
  const until = performance.now() + LATE_MS;
  for (;;) {
    const [row] = await db<{ silent: number }[]>`
      select quota_silent(extract(epoch from clock_timestamp())::float8 * 1000) as silent`;
    if (row!.silent === 0) return;
    if (performance.now() >= until) break;
    await wait(POLL_MS, new AbortController().signal);
  }
  throw conflict(
    "A proxy of this control plane has sent no heartbeat, so it may serve the account's bases on its own. Restore its connection to the control plane; if it was killed, wait a quarter of an hour. Then repeat the command",
  );
}
