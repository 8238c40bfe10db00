/** A customer's base as the operator sees it: its state and its size, and none of its rows. */
import type { SyncRun } from "../../core/control/bases";
import type { SqlUser } from "../../core/control/placement";
import type { BaseSummary, Indicator } from "../../core/control/status";
import { OutcomeBadge, runKindLabels } from "../base/runs";
import { SqlUserTable } from "../base/sql-user-table";
import { Ago, Badge, Card, Empty, Table } from "../components";
import { counted, formatDuration, inDigits } from "../format";
import { AccountLink } from "./frame";

interface OperatorBaseProps {
  base: BaseSummary;
  owner: string;
  indicator: Indicator;
  runs: SyncRun[];
  /** Undefined: the customer hosts the database. */
  users: SqlUser[] | undefined;
  now: Date;
}

const tones = { green: "green", yellow: "yellow", red: "red" } as const;

export function OperatorBase({ base, owner, indicator, runs, users, now }: OperatorBaseProps) {
  return (
    <>
      <Card id="base" title={base.name || base.sourceBaseId}>
        <p class="wrap">
          <Badge tone={tones[indicator.color]}>{base.state.replaceAll("_", " ")}</Badge> {indicator.reason}
        </p>
        <dl class="facts">
          <Fact name="Base">
            <code>{base.id}</code>
          </Fact>
          <Fact name="In Airtable">
            <code>{base.sourceBaseId}</code>
          </Fact>
          <Fact name="Owner">
            <AccountLink id={base.accountId}>{owner}</AccountLink>
          </Fact>
          <Fact name="Database">
            <code>
              {base.database}.{base.schema}
            </code>
          </Fact>
          <Fact name="Size">
            {counted(base.tables, "table")}, {counted(base.records, "record")},{" "}
            {counted(base.issues, "issue")}
          </Fact>
          <Fact name="Mode">{base.settings.rapid ? "Rapid" : base.settings.live ? "Live" : "Sweeps"}</Fact>
          <Fact name="Connected">
            <Ago at={base.createdAt} now={now} />
          </Fact>
        </dl>
        <p class="muted">Operators see no rows, columns or credentials of customers.</p>
      </Card>
      <Card id="sql-users" title="SQL users">
        {users === undefined ? (
          <p class="muted">The customer hosts this database and manages its users.</p>
        ) : users.length === 0 ? (
          <p class="muted">None. The customer connects with the database's own role.</p>
        ) : (
          <SqlUserTable users={users} now={now} />
        )}
      </Card>
      <Card id="runs" title="Latest syncs">
        {runs.length === 0 ? <Empty title="No sync yet" /> : <Runs runs={runs} now={now} />}
      </Card>
    </>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd class="wrap">{children}</dd>
    </>
  );
}

function Runs({ runs, now }: { runs: SyncRun[]; now: Date }) {
  return (
    <Table
      caption="Latest syncs"
      rows={runs}
      columns={(column) => [
        column({ text: "Started", class: "nowrap" }, (run) => <Ago at={run.started_at} now={now} />),
        column({ text: "Kind", class: "nowrap" }, (run) => runKindLabels[run.kind]),
        column({ text: "Syncs", isNumber: true }, (run) => inDigits(run.syncs)),
        column({ text: "Mean duration", isNumber: true }, (run) =>
          run.duration_ms === null ? "–" : formatDuration(run.duration_ms),
        ),
        column({ text: "Outcome", class: "wrap" }, (run) => <OutcomeBadge run={run} />),
      ]}
    />
  );
}
