/** The Postgres servers that hold replicas: a list, and the actions to add and to drain one. */
import type { Cluster } from "../../core/control/placement";
import { Badge, Button, Card, ErrorNote, FormPanel } from "../components";
import { Field } from "../components/field";
import { Table } from "../components/table";
import { inDigits } from "../format";

export interface NewClusterForm {
  name: string;
  region: string;
  publicHost: string;
  publicPort: string;
}

export function Clusters(props: { clusters: Cluster[]; typed?: NewClusterForm; error?: string | undefined }) {
  const { clusters, typed, error } = props;
  return (
    <Card id="clusters" title="Clusters">
      <FormPanel id="add" action="/operator/clusters" button="Add a cluster" isOpen={typed !== undefined}>
        <form method="post" action="/operator/clusters" class="stack rows">
          {error ? <ErrorNote>{error}</ErrorNote> : null}
          <Field label="Name" name="name" required maxLength={60} value={typed?.name} autocomplete="off" />
          <Field
            label="Region"
            name="region"
            required
            maxLength={40}
            value={typed?.region}
            autocomplete="off"
            placeholder="eu-central-1"
          />
          <Field
            label="Admin URL"
            name="url"
            type="password"
            required
            autocomplete="off"
            hint="postgres://user:password@host:port/database. The role must be allowed to create databases and roles. Basetide checks this now."
          />
          <Field
            label="Public host"
            name="public_host"
            value={typed?.publicHost}
            autocomplete="off"
            hint="Shown to customers. Default: the host of the URL."
          />
          <Field
            label="Public port"
            name="public_port"
            inputMode="numeric"
            value={typed?.publicPort}
            autocomplete="off"
            hint="Default: the port of the URL."
          />
          <Button kind="primary">Add</Button>
        </form>
      </FormPanel>
      <Table
        caption="Clusters, and the databases on each"
        head={[
          { text: "Name" },
          { text: "Location" },
          { text: "Public address" },
          { text: "Databases", isNumber: true },
          { text: "State" },
          { text: "Drain", isHidden: true },
        ]}
      >
        {clusters.map((cluster) => (
          <tr key={cluster.id}>
            <th scope="row">{cluster.name}</th>
            <td>{cluster.location ?? <span class="muted">Not stated</span>}</td>
            <td class="wrap">
              <code>
                {cluster.publicHost}:{cluster.publicPort}
              </code>
            </td>
            <td class="number">{inDigits(cluster.databases)}</td>
            <td>
              <Badge tone={cluster.state === "active" ? "green" : "neutral"}>
                {cluster.state === "active" ? "Active" : "Draining"}
              </Badge>
            </td>
            <td class="number">
              {cluster.state === "active" ? (
                <form method="post" action="/operator/clusters/drain">
                  <input type="hidden" name="name" value={cluster.name} />
                  <Button isSmall title="The cluster keeps its databases and gets no new ones">
                    Drain<span class="visually-hidden"> {cluster.name}</span>
                  </Button>
                </form>
              ) : null}
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
