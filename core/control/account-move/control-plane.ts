/** The two control planes of a move. */
import type { Context } from "../../context";
import { BasetideError, conflict, isBasetideError } from "../../errors";
import { pendingMigrations } from "../setup";

export type PlaneContext = Pick<Context, "config" | "db" | "secrets" | "log" | "actor">;

/** Reads the id of a control plane's installation. @throws BasetideError `conflict` if no process has ever started on it */
export async function installationOf({ db }: Pick<PlaneContext, "db">): Promise<string> {
  const [row] = await db<{ id: string }[]>`select id from installation`;
  if (row) return row.id;
  throw conflict("The other control plane has never been started. Start its console first");
}

/**
 * Checks that the target is another control plane of the same version, and that its key is the right one.
 *
 * @throws BasetideError `conflict`, `config_invalid`
 */
export async function requireOther(source: PlaneContext, target: PlaneContext): Promise<void> {
  const pending = await pendingMigrations(target.db);
  if (pending.length > 0) {
    throw conflict(
      `The other control plane lacks ${pending.join(", ")}. Update its processes to the version of this command first`,
    );
  }
  if ((await installationOf(source)) === (await installationOf(target)))
    throw conflict("--to is the control plane that has the account now");
  const [cluster] = await target.db<{ id: string; url: string }[]>`
    select id, encrypted_admin_url as url from clusters limit 1`;
  if (!cluster) return;
  try {
    target.secrets.decrypt(cluster.url, `clusters.admin_url:${cluster.id}`);
  } catch (error) {
    if (!isBasetideError(error, "secret_unreadable")) throw error;
    throw new BasetideError(
      "config_invalid",
      "TARGET_SECRET_KEY is not the SECRET_KEY of the other control plane: it cannot decrypt the URL of its cluster",
    );
  }
}
