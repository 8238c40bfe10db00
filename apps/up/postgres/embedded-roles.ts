/**
 * The roles that the service uses on the embedded Postgres: one owns the control plane's database, one creates
 * replicas. The superuser is used only to create them.
 */
import { createHmac } from "node:crypto";
import { prepareControl } from "../../../core/control/setup";
import { prepareCluster } from "../../../core/replica";
import { CLUSTER_ROLE, CONTROL_ROLE } from "./embedded-postgres";

interface EmbeddedRoles {
  controlUrl: string;
  /** The server's admin URL as a cluster. */
  clusterUrl: string;
}

/**
 * Prepares the server. Idempotent, also when two processes that share a server run it at once: passwords are derived
 * from the superuser's, so both compute the same ones.
 *
 * @param database the control plane's; created if absent
 */
export async function embeddedRoles(superuserUrl: string, database: string): Promise<EmbeddedRoles> {
  const control = { role: CONTROL_ROLE, password: derived(superuserUrl, CONTROL_ROLE), database };
  const home = new URL(superuserUrl).pathname.slice(1);
  const cluster = { role: CLUSTER_ROLE, password: derived(superuserUrl, CLUSTER_ROLE), database: home };
  await prepareControl(superuserUrl, control);
  await prepareCluster(superuserUrl, cluster, { isDedicated: true });
  return {
    controlUrl: urlOf(superuserUrl, control),
    clusterUrl: urlOf(superuserUrl, cluster),
  };
}

/** Derives a role's password. It reveals nothing about the superuser's password. */
function derived(superuserUrl: string, role: string): string {
  return createHmac("sha256", new URL(superuserUrl).password).update(role).digest("base64url");
}

function urlOf(
  serverUrl: string,
  { role, password, database }: { role: string; password: string; database: string },
): string {
  return Object.assign(new URL(serverUrl), { username: role, password, pathname: `/${database}` }).href;
}
