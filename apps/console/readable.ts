/** Whether a member may read rows of a base in the console, with the role that the console uses for its database. */
import { type CurrentUser, can } from "../../core/control/accounts";
import type { Base } from "../../core/control/bases";
import { getDatabase, requireReader } from "../../core/control/placement";
import type { ConsoleContext } from "./page-kit";

/** @throws BasetideError `forbidden` */
export async function requireReadable(
  { db }: Pick<ConsoleContext, "db">,
  { account }: Pick<CurrentUser, "account">,
  base: Pick<Base, "database">,
): Promise<void> {
  requireReader(await getDatabase(db, base.database.id), can(account.role, "credentials"));
}
