/**
 * The databases of a moving account, which stay where they are: finds each of their clusters in the target, ends the
 * source's right to write, and records on the server whose databases they are.
 */
import { conflict } from "../../errors";
import { claimEpoch, labelHosted, openReplica, withAdmin } from "../../replica";
import { listBases, replicaTarget } from "../bases";
import {
  clusterAdminUrl,
  type Database,
  isSameServer,
  listClusters,
  listDatabases,
  serverIdentity,
} from "../placement";
import { installationOf, type PlaneContext } from "./control-plane";

/** By the id of a cluster of the source: the id of the same server in the target. */
export type ClusterIds = Map<string, string>;

/**
 * Matches clusters by asking the servers who they are: one server may have several addresses.
 *
 * @throws BasetideError `conflict` if the target has not registered a server, or its role may not write the databases
 */
export async function matchClusters(
  source: PlaneContext,
  target: PlaneContext,
  accountId: string,
): Promise<ClusterIds> {
  const hosted = (await listDatabases(source.db, accountId)).filter(({ clusterId }) => clusterId !== null);
  const used = (await listClusters(source.db)).filter(({ id }) =>
    hosted.some(({ clusterId }) => clusterId === id),
  );
  const offered = await Promise.all(
    (await listClusters(target.db)).map(async ({ id, name }) => {
      const url = await clusterAdminUrl(target, id);
      return { id, name, url, identity: await identify(url).catch(() => undefined) };
    }),
  );
  const found: ClusterIds = new Map();
  for (const cluster of used) {
    const url = await clusterAdminUrl(source, cluster.id);
    const identity = await identify(url);
    const same = offered.find(
      (other) =>
        other.identity && (isSameServer(identity, other.identity) || addressOf(url) === addressOf(other.url)),
    );
    if (!same) {
      throw conflict(
        `The other control plane has not registered the cluster "${cluster.name}" (${cluster.publicHost}:${cluster.publicPort}), which holds databases of the account. Register the server there with \`operator cluster add\`, with the same role in its URL, or move the bases to a cluster that both have (\`operator base move\`)`,
      );
    }
    const databases = hosted.filter(({ clusterId }) => clusterId === cluster.id);
    await requireRights(same, databases);
    found.set(cluster.id, same.id);
  }
  return found;
}

async function requireRights(cluster: { name: string; url: string }, databases: Database[]): Promise<void> {
  const names = databases.map(({ name }) => name);
  const owned = await withAdmin(
    cluster.url,
    (admin) => admin<{ name: string }[]>`
      select datname as name from pg_database
      where datname = any (${names}) and pg_has_role(current_user, datdba, 'usage')`,
  );
  const other = names.find((name) => !owned.some((row) => row.name === name));
  if (other === undefined) return;
  throw conflict(
    `The role in the URL of the cluster "${cluster.name}" of the other control plane may not write the database ${other}. Register the server there with the role that this control plane uses, or grant that role to the other one`,
  );
}

function identify(url: string) {
  return withAdmin(url, serverIdentity);
}

function addressOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port || 5432}`;
}

/**
 * Raises the epoch of every replica: no worker of the source, however long it was suspended, writes after this.
 *
 * @throws BasetideError `replica_unavailable`: a worker could go on once the server is back
 */
export async function fenceReplicas(source: PlaneContext, accountId: string): Promise<void> {
  for (const base of await listBases(source.db, accountId)) {
    await using replica = openReplica(await replicaTarget(source, base));
    await claimEpoch(replica);
  }
}

/** Labels the account's hosted databases, so that the other installation does not take them for orphans and drop them. */
export async function labelDatabases(of: PlaneContext, accountId: string): Promise<void> {
  const owner = await installationOf(of);
  for (const { clusterId, name } of await listDatabases(of.db, accountId)) {
    if (clusterId !== null) await labelHosted(await clusterAdminUrl(of, clusterId), name, owner);
  }
}
