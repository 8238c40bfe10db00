/** Live mode on a replica where some statements fail: a batch continues where it stopped. */
import { expect, test, vi } from "vitest";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 30_000 });

test("a batch whose start could not be recorded in _sync_meta records it later and continues", async () => {
  const { engine, edit, equal, replica, runs, running } = await liveTeams();
  const { sql } = replica.replica;
  await sql`alter function public_swap.mark_sync_started(bigint, interval) rename to kept_mark`;
  await sql`
    create function public_swap.mark_sync_started(p_epoch bigint, p_ago interval) returns void language plpgsql as $$
    begin
      raise 'the server is starting up' using errcode = '57P03';
    end $$`;
  edit.teams.put(teamRecord("recT2", "Navy"));
  await until(() => runs.some((run) => run.error?.code === "replica_unavailable"), {
    what: "the failure is recorded",
  });
  await sql`drop function public_swap.mark_sync_started(bigint, interval)`;
  await sql`alter function public_swap.kept_mark(bigint, interval) rename to mark_sync_started`;
  await engine.settled();
  await equal();
  await until(() => runs.at(-1)?.completedAt, { what: "the batch is complete" });
  const [meta] = await sql<{ started: Date; completed: Date }[]>`
    select started_at as started, completed_at as completed from public._sync_meta`;
  expect(meta!.completed.getTime()).toBeGreaterThan(meta!.started.getTime());
  expect(Math.abs(meta!.started.getTime() - runs.at(-1)!.startedAt.getTime())).toBeLessThan(50);
  await running.over();
});
