/** The fleet at a glance: workers and their leases, waiting jobs, and the bases that fail. */
import type { UnhealthyBase } from "../../core/alerts";
import type { FleetState, WorkerStatus } from "../../core/control/fleet";
import type { Quarantine } from "../../core/control/jobs";
import { Ago, Badge, Card, Figure, Table } from "../components";
import { counted, formatDuration, inDigits } from "../format";
import { live } from "../live";
import { BaseLink } from "./frame";
import { Quarantined } from "./quarantined";
import { Unhealthy } from "./unhealthy";

interface FleetProps {
  workers: WorkerStatus[];
  state: FleetState;
  /** Waiting and active jobs. */
  queue: { waiting: number; active: number };
  openRequests: number;
  unhealthy: { bases: UnhealthyBase[]; count: number };
  quarantined: Quarantine;
  now: Date;
}

export function Fleet({ workers, state, queue, openRequests, unhealthy, quarantined, now }: FleetProps) {
  const alive = workers.filter((worker) => worker.isAlive);
  const held = alive.reduce((sum, worker) => sum + worker.bases, 0);
  const capacity = alive.reduce((sum, worker) => sum + worker.capacity, 0);
  return (
    <div id="fleet" class="stack" {...live("/operator", 3)}>
      <Card id="fleet-now">
        <dl class="figures">
          <Figure
            name="Running workers"
            note={`holding ${inDigits(held)} of at most ${counted(capacity, "base")}`}
          >
            {inDigits(alive.length)}
          </Figure>
          <Figure name="Queue" note={`waiting; ${inDigits(queue.active)} running`}>
            {inDigits(queue.waiting)}
          </Figure>
          <Figure
            name="Oldest lag"
            note={
              state.oldestBaseId === null || state.oldestLagMs === 0 ? (
                "no base lags"
              ) : (
                <BaseLink id={state.oldestBaseId}>{state.oldestBaseName}</BaseLink>
              )
            }
          >
            {state.oldestLagMs ? formatDuration(state.oldestLagMs) : "–"}
          </Figure>
          <Figure
            name="Bases"
            note={`syncing; ${inDigits(state.bases.starting)} starting, ${inDigits(state.bases.needsAttention)} needing attention, ${inDigits(state.bases.paused)} paused`}
          >
            {inDigits(state.bases.syncing)}
          </Figure>
        </dl>
        {openRequests > 0 ? (
          <p>
            <a href="/operator/requests">{counted(openRequests, "request")}</a> waiting for a decision.
          </p>
        ) : null}
      </Card>
      <Unhealthy {...unhealthy} now={now} />
      <Quarantined {...quarantined} now={now} />
      <Card id="workers" title="Workers">
        <Table
          caption="Workers and the bases that they sync"
          rows={workers}
          empty={
            <p class="muted">
              No worker is running, so no base is synced. Start one with <code>bun apps/worker/main.ts</code>.
            </p>
          }
          columns={(column) => [
            column("State", (worker) => (
              <Badge tone={worker.isAlive ? "green" : "red"}>{worker.isAlive ? "Running" : "Silent"}</Badge>
            )),
            column({ text: "Host", isHead: true, class: "wrap" }, (worker) => worker.host),
            column({ text: "Process", isNumber: true }, (worker) => worker.pid),
            column({ text: "Bases", isNumber: true }, (worker) => inDigits(worker.bases)),
            column({ text: "Capacity", isNumber: true }, (worker) => inDigits(worker.capacity)),
            column({ text: "Last heartbeat", class: "nowrap" }, (worker) => (
              <Ago at={worker.seenAt} now={now} />
            )),
            column({ text: "Started", class: "nowrap" }, (worker) => <Ago at={worker.startedAt} now={now} />),
          ]}
        />
      </Card>
    </div>
  );
}
