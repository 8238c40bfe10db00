/**
 * The reading URL of a database that a customer hosts: the SQL editor, the data browser and downloads use it instead of
 * the URL that Basetide writes with. Without one, only members who may see that URL read the database in the console.
 */
import { isProblem } from "../../check-result";
import type { Actor, Context } from "../../context";
import { BasetideError, conflict } from "../../errors";
import { recordChange } from "../audit";
import type { DatabaseCheck } from "./database-check";
import { requireUsable } from "./database-check";
import type { Database } from "./databases";
import { inspectReader } from "./external-database";
import { parseConnectionTarget, withTls } from "./external-url";

type ReadingContext = Pick<Context, "config" | "db" | "secrets" | "log"> & { actor: Actor };

/**
 * Checks that the URL's role can read the database's bases and change nothing, and stores the URL.
 *
 * @returns the results of the checks
 * @throws BasetideError `destination_invalid` if it cannot be used, `conflict` for a database that Basetide hosts
 */
export async function setReadingUrl(
  ctx: ReadingContext,
  database: Database,
  url: string,
): Promise<DatabaseCheck[]> {
  requireExternal(database);
  const place = parseConnectionTarget(url);
  if (place.database !== database.name) {
    throw new BasetideError(
      "destination_invalid",
      `The URL names the database ${place.database}, and the bases are in ${database.name}`,
    );
  }
  const schemas = await ctx.db<{ name: string }[]>`
    select schema_name as name from bases where database_id = ${database.id} order by 1`;
  const { checks, isEncrypted } = await inspectReader(
    ctx,
    url,
    schemas.map(({ name }) => name),
  );
  requireUsable(checks);
  const encrypted = ctx.secrets.encrypt(
    isEncrypted ? withTls(place) : place.text,
    `databases.reader_url:${database.id}`,
  );
  await ctx.db.begin(async (tx) => {
    await tx`update databases set encrypted_reader_url = ${encrypted} where id = ${database.id}`;
    const { accountId, id, name } = database;
    const details = { name, user: place.user };
    await recordChange(tx, ctx.actor, { accountId, action: "database.reader_set", subject: id, details });
  });
  return checks.filter((check) => !isProblem(check));
}

/** @throws BasetideError `conflict` for a database that Basetide hosts */
export async function removeReadingUrl(ctx: ReadingContext, database: Database): Promise<void> {
  requireExternal(database);
  await ctx.db.begin(async (tx) => {
    const { count } = await tx`
      update databases set encrypted_reader_url = null
      where id = ${database.id} and encrypted_reader_url is not null`;
    if (count === 0) return;
    const { accountId, id, name } = database;
    await recordChange(tx, ctx.actor, {
      accountId,
      action: "database.reader_removed",
      subject: id,
      details: { name },
    });
  });
}

/**
 * @param seesCredentials whether the member may see the URL that Basetide writes with
 * @throws BasetideError `forbidden` if the member may not read the database in the console
 */
export function requireReader(database: Database, seesCredentials: boolean): void {
  if (database.clusterId !== null || database.hasReader || seesCredentials) return;
  throw new BasetideError(
    "forbidden",
    "Your account hosts this database, and the role in its URL may do more than read this base. Ask the account's owner for a reading URL (under Connect), or for the role editor",
  );
}

function requireExternal({ clusterId }: Database): void {
  if (clusterId === null) return;
  throw conflict("Basetide hosts this database, and reads it with a role of its own that can only read");
}
