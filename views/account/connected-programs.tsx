/** Programs that act as agents of the account, with the way to disconnect each. */
import type { AgentConnection } from "../../core/control/agents";
import { Badge, Card, CopyField, DialogLink, Empty, Table } from "../components";
import { Ago } from "../components/ago";

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
      {connections.length === 0 ? (
        <Empty title="No programs yet">
          Give a client the address above, and it sends you here to agree.
        </Empty>
      ) : (
        <Table
          caption="Connected programs"
          head={[
            { text: "Program" },
            { text: "Agent" },
            { text: "May" },
            { text: "Connected" },
            { text: "Last token" },
            { text: "Action", isHidden: true },
          ]}
        >
          {connections.map((one) => (
            <tr key={one.id}>
              <th scope="row" class="wrap">
                <bdi>{one.clientName}</bdi>
                <div class="muted small">{new URL(one.clientId).host}</div>
              </th>
              <td class="wrap">
                <bdi>{one.agentName}</bdi>
              </td>
              <td>{one.scopes.includes("agent:propose") ? "Read, propose" : "Read"}</td>
              <td>
                <Ago at={one.connectedAt} now={now} />
                <div class="muted small wrap">{one.connectedBy}</div>
              </td>
              <td class="nowrap">
                {one.isExpired || one.refreshedAt === null ? (
                  <Badge tone="red">Expired</Badge>
                ) : (
                  <Ago at={one.refreshedAt} now={now} />
                )}
              </td>
              <td class="number">
                <DialogLink kind="quiet" isSmall href={`/account/connections/${one.id}/revoke`}>
                  Disconnect<span class="visually-hidden"> {one.clientName}</span>
                </DialogLink>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}
