/** Records that a notification has arrived, instead of awaiting one: bases that nobody edits are read every five minutes. */
import type { Context } from "../../core/context";
import { ADDRESS_CHANGED, NOTIFICATION_CHANNEL } from "../../core/control/feeds/live-feeds";

export async function proveAddress({ config, db }: Pick<Context, "config" | "db">): Promise<void> {
  await db`insert into notification_addresses (address, is_proven) values (${config.consoleUrl}, true)`;
  await db`select pg_notify(${NOTIFICATION_CHANNEL}, ${ADDRESS_CHANGED})`;
}
