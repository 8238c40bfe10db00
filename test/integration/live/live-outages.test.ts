/** Live mode on a replica that answers some statements, and not others: a round goes on where it was. */
import { expect, test, vi } from "vitest";
import { liveTeams } from "../../support/live-teams";
import { until } from "../../support/poll";
import { teamRecord } from "../../support/teams";

vi.setConfig({ testTimeout: 30_000 });

test("a round whose beginning could not be noted in _sync_meta notes it later, and goes on", async () => {
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
    what: "the failure is on record",
  });
  await sql`drop function public_swap.mark_sync_started(bigint, interval)`;
  await sql`alter function public_swap.kept_mark(bigint, interval) rename to mark_sync_started`;
  await engine.settled();
  await equal();
  await until(() => runs.at(-1)?.completedAt, { what: "the round is complete" });
  const [meta] = await sql<{ started: Date; completed: Date }[]>`
    select started_at as started, completed_at as completed from public._sync_meta`;
  expect(meta!.completed.getTime()).toBeGreaterThan(meta!.started.getTime());
  expect(Math.abs(meta!.started.getTime() - runs.at(-1)!.startedAt.getTime())).toBeLessThan(50);
  await running.over();
});
