/** Checks I3, and everything else that can only be checked in a quiet service. */
import type { Sql } from "postgres";
import { compareToSource } from "../../support/compare-to-source";
import { until } from "../../support/poll";
import type { Chaos } from "./chaos";
import type { Service } from "./service";
import type { WatchedBase } from "./watched-base";

/** A feed whose last notification was lost is detected by the comparison of SQL with the source, once a minute, ms. */
const READ_OUT_MS = 120_000;
/**
 * After repeated failures, a repair is rescheduled by up to 5 minutes, and one that a dead proxy had claimed is due
 * after a minute: under continuous faults, none may be older than this, ms.
 */
const OLDEST_REPAIR_MS = 400_000;
const POLL_MS = 50;
/** Between two comparisons of all cells of a base, ms. */
const COMPARE_MS = 100;

/** Waits until no repair is pending, however far it was rescheduled. @returns the violations */
export async function repairsDone({ service }: Chaos): Promise<string[]> {
  const isDone = async () => (await service.onControl(oldestRepairMs)) === undefined;
  const options = { what: "no repair is pending", timeoutMs: OLDEST_REPAIR_MS, retryErrors: true };
  return until(isDone, options).then(
    () => [],
    (error: Error) => [error.message],
  );
}

/**
 * Stops all writes, and waits until SQL equals the source, cell by cell.
 *
 * @param boundMs longest wait
 * @returns the violations
 */
export async function settle({ service, figures, people }: Chaos, boundMs: number): Promise<string[]> {
  await people.pause();
  const quietAt = performance.now();
  const wait = (condition: () => Promise<boolean>, timeoutMs: number, what: string) =>
    until(condition, { what, timeoutMs, intervalMs: POLL_MS, retryErrors: true });
  const checks = service.bases.flatMap((base) => [
    equal(service, base, boundMs).then((cells) => {
      figures.cells += cells;
      figures.note(`quiet: SQL equals the source (${base.facts.mode})`, performance.now() - quietAt);
    }),
    base.facts.mode === "live"
      ? wait(() => service.onControl(isReadOut(base)), READ_OUT_MS, "the feed is read out").then(() =>
          figures.note("quiet: the feed is read out", performance.now() - quietAt),
        )
      : undefined,
  ]);
  const results: PromiseSettledResult<unknown>[] = await Promise.allSettled(checks);
  results.push(
    ...(await Promise.allSettled([
      wait(
        async () => ((await service.onControl(oldestRepairMs)) ?? 0) < OLDEST_REPAIR_MS,
        boundMs,
        `no repair is older than ${OLDEST_REPAIR_MS} ms`,
      ),
      service.readAudits(),
      service.checkArrivals(),
    ])),
  );
  return results.flatMap((result) =>
    result.status === "rejected"
      ? [result.reason instanceof Error ? result.reason.message : String(result.reason)]
      : [],
  );
}

/** @returns cells compared */
async function equal(service: Service, base: WatchedBase, boundMs: number): Promise<number> {
  const { contract } = base;
  const treatment = await until(() => service.onControl((control) => contract.treatment(control)), {
    what: "the selection is known",
    timeoutMs: boundMs,
    retryErrors: true,
  });
  const { dump, ignored } = contract.shownOf(await base.source.dump(base.facts.sourceBaseId), treatment);
  let differences: string[] = [];
  const isEqual = async () => {
    const compared = await compareToSource(base.reader, dump, "public", ignored);
    differences = compared.differences;
    return differences.length > 0 ? undefined : compared;
  };
  let cells: number;
  try {
    const options = { what: "equal", timeoutMs: boundMs, intervalMs: COMPARE_MS, retryErrors: true };
    cells = (await until(isEqual, options)).cells;
  } catch (error) {
    const why = differences.length > 0 ? differences.slice(0, 3).join("; ") : String(error);
    throw new Error(
      `I3: ${base.facts.mode} differs from its source ${boundMs} ms after the last change: ${why}`,
    );
  }
  await service.onControl((control) => contract.searched(control, treatment, boundMs));
  return cells;
}

/**
 * Whether live mode itself has kept up, and not only the sweep in its background. A base that has no feed now has
 * nothing to read.
 */
function isReadOut({ facts, source }: WatchedBase): (control: Sql) => Promise<boolean> {
  return async (control) => {
    const [feed] = await control<{ webhookId: string | null; cursor: number }[]>`
      select webhook_id as "webhookId", cursor::int as cursor from live_feeds where base_id = ${facts.id}`;
    if (!feed?.webhookId) return true;
    const hooks = await source.call<{ id: string; cursorForNextPayload: number }[]>(
      "GET",
      `bases/${facts.sourceBaseId}/webhooks`,
    );
    return hooks.some(({ id, cursorForNextPayload: end }) => id === feed.webhookId && end === feed.cursor);
  };
}

/** Undefined if none is pending. */
async function oldestRepairMs(control: Sql): Promise<number | undefined> {
  const [row] = await control<{ ms: number | null }[]>`
    select extract(epoch from now() - min(recorded_at))::float8 * 1000 as ms from repairs`;
  return row!.ms ?? undefined;
}
