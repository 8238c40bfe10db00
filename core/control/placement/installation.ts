/** The name of this service among others that may use the same clusters. A restored dump bears the same one. */
import { randomBytes } from "node:crypto";
import type { Db } from "../../context";

export async function installationId(db: Db): Promise<string> {
  await db`insert into installation (id) values (${randomBytes(12).toString("hex")}) on conflict do nothing`;
  const [row] = await db<{ id: string }[]>`select id from installation`;
  return row!.id;
}
