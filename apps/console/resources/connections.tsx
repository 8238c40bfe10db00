/** Programs that members have connected to agents by signing in. */
import { t } from "elysia";
import { endConnection, getConnection, listConnections } from "../../../core/control/agents";
import { ConnectedPrograms } from "../../../views/account/connected-programs";
import { AccountFrame } from "../../../views/account/frame";
import { ofAccount, resource } from "../resource-kit/resource";
import { named, nullable, timestamp } from "../schemas/parts";

const API = "/api/v1/connections";
const PAGE = "/account/connections";

const answer = named(
  "Connection",
  t.Object({
    id: t.String(),
    agent_id: t.String(),
    client_name: t.String(),
    client_id: t.String(),
    connected_by: t.String(),
    scopes: t.Array(t.String()),
    connected_at: timestamp,
    refreshed_at: nullable(timestamp),
    is_expired: t.Boolean(),
  }),
);

export const connectionsResource = resource({
  tag: "Agents",
  params: t.Object({ id: t.String({ maxLength: 100 }) }),
  scope: ofAccount,
  find: ({ db }, account, { id }) => getConnection(db, account.id, id),
  console: {
    facts: () => ({ active: "agents" }),
    frame: (_, content) => <AccountFrame tab={PAGE}>{content}</AccountFrame>,
    all: {
      path: PAGE,
      title: "Connected programs",
      show: async ({ db, config }, { id }) => (
        <ConnectedPrograms
          connections={await listConnections(db, id)}
          consoleUrl={config.consoleUrl}
          now={new Date()}
        />
      ),
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "The programs that members have connected to agents",
    answer: t.Array(answer),
    run: ({ db }, account) => listConnections(db, account.id),
  })
  .one({
    api: `DELETE ${API}/:id`,
    summary: "Disconnect a program",
    description: "Its tokens stop working at once.",
    gone: "Disconnected",
    run: ({ db, actor }, connection) => endConnection(db, connection, actor),
    form: {
      path: `${PAGE}/:id/revoke`,
      to: PAGE,
      done: "Disconnected. The program has no access any longer.",
      asks: ({ clientName, agentName }) => ({
        title: `Disconnect “${clientName}”?`,
        effect: <p>It loses its access as the agent {agentName} at once, and can be connected again.</p>,
        button: "Disconnect",
        isDanger: true,
        back: PAGE,
      }),
    },
  });
