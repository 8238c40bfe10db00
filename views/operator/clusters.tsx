/** The Postgres servers that hold replicas: a list, and the actions to add and to drain one. */
import type { Cluster } from "../../core/control/placement";
import { Badge, Button, Card, ErrorNote, Field, FormPanel, Table } from "../components";
import { inDigits } from "../format";

export interface NewClusterForm {
  name: string;
  region: string;
  publicHost: string;
  publicPort: string;
}

export function Clusters(props: {
  clusters: Cluster[];
  typed?: NewClusterForm | undefined;
  error?: string | undefined;
}) {
  const { clusters, typed, error } = props;
  return (
    <Card id="clusters" title="Clusters">
      <FormPanel id="add" action="/operator/clusters" button="Add a cluster" isOpen={typed !== undefined}>
        <form method="post" action="/operator/clusters" class="stack rows">
          {error ? <ErrorNote>{error}</ErrorNote> : null}
          <Field label="Name" name="name" required maxLength={60} value={typed?.name} />
          <Field
            label="Region"
            name="region"
            required
            maxLength={40}
            value={typed?.region}
            placeholder="eu-central-1"
          />
          <Field
            label="Admin URL"
            name="url"
            type="password"
            required
            hint="postgres://user:password@host:port/database. The role must be allowed to create databases and roles. Basetide checks this now."
          />
          <Field
            label="Public host"
            name="public_host"
            value={typed?.publicHost}
            hint="Shown to customers. Default: the host of the URL."
          />
          <Field
            label="Public port"
            name="public_port"
            inputMode="numeric"
            value={typed?.publicPort}
            hint="Default: the port of the URL."
          />
          <Button kind="primary">Add</Button>
        </form>
      </FormPanel>
      <Table
        caption="Clusters, and the databases on each"
        rows={clusters}
        columns={(column) => [
          column({ text: "Name", isHead: true }, (cluster) => cluster.name),
          column("Location", (cluster) => cluster.location ?? <span class="muted">Not stated</span>),
          column({ text: "Public address", class: "wrap" }, (cluster) => (
            <code>
              {cluster.publicHost}:{cluster.publicPort}
            </code>
          )),
          column({ text: "Databases", isNumber: true }, (cluster) => inDigits(cluster.databases)),
          column("State", (cluster) => (
            <Badge tone={cluster.state === "active" ? "green" : "neutral"}>
              {cluster.state === "active" ? "Active" : "Draining"}
            </Badge>
          )),
          column({ text: "Drain", isHidden: true, class: "number" }, (cluster) =>
            cluster.state === "active" ? (
              <form method="post" action="/operator/clusters/drain">
                <input type="hidden" name="name" value={cluster.name} />
                <Button isSmall title="The cluster keeps its databases and gets no new ones">
                  Drain<span class="visually-hidden"> {cluster.name}</span>
                </Button>
              </form>
            ) : null,
          ),
        ]}
      />
    </Card>
  );
}
