/** Programs that act as agents of the account, with the way to disconnect each. */
import type { AgentConnection } from "../../core/control/agents";
import { Ago, Badge, Card, CopyField, DialogLink, Empty, Table } from "../components";

interface ConnectedProgramsProps {
  connections: AgentConnection[];
  consoleUrl: string;
  now: Date;
}

export function ConnectedPrograms({ connections, consoleUrl, now }: ConnectedProgramsProps) {
  return (
    <Card id="connections" title="Connected programs">
      <p class="muted">
        AI clients that a member has connected. Each reads with SQL as an agent of this account.{" "}
        <a href="/docs/agents">How to connect one</a>
      </p>
      <CopyField id="mcp-address" label="Address for the client" value={`${consoleUrl}/mcp`} />
      <Table
        caption="Connected programs"
        rows={connections}
        empty={
          <Empty title="No programs yet">
            Give a client the address above, and it sends you here to agree.
          </Empty>
        }
        columns={(column) => [
          column({ text: "Program", isHead: true, class: "wrap" }, (one) => (
            <>
              <bdi>{one.clientName}</bdi>
              <div class="muted small">{new URL(one.clientId).host}</div>
            </>
          )),
          column({ text: "Agent", class: "wrap" }, (one) => <bdi>{one.agentName}</bdi>),
          column("May", (one) => (one.scopes.includes("agent:propose") ? "Read, propose" : "Read")),
          column("Connected", (one) => (
            <>
              <Ago at={one.connectedAt} now={now} />
              <div class="muted small wrap">{one.connectedBy}</div>
            </>
          )),
          column({ text: "Last token", class: "nowrap" }, (one) =>
            one.isExpired || one.refreshedAt === null ? (
              <Badge tone="red">Expired</Badge>
            ) : (
              <Ago at={one.refreshedAt} now={now} />
            ),
          ),
          column({ text: "Action", isHidden: true, class: "number" }, (one) => (
            <DialogLink kind="quiet" isSmall href={`/account/connections/${one.id}/revoke`}>
              Disconnect<span class="visually-hidden"> {one.clientName}</span>
            </DialogLink>
          )),
        ]}
      />
    </Card>
  );
}
