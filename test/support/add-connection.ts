/** A program that a member has connected to a new agent, as the sign-in of clients leaves it. */
import type { Db } from "../../core/context";
import { newId } from "../../core/ids";

/** @returns the id of the connection */
export async function addConnection(db: Db, accountId: string, name: string): Promise<string> {
  const [agent, connection] = [newId("agent"), newId("connection")];
  const clientId = `https://client.example.com/${agent}.json`;
  await db`insert into agents (id, account_id, name, may_propose, created_by)
    values (${agent}, ${accountId}, ${`Agent of ${name}`}, true, 'owner@example.org')`;
  await db`insert into oauth_clients (id, client_id, name, redirect_uris)
    values (${newId("oauth")}, ${clientId}, ${name}, '["http://127.0.0.1/callback"]')`;
  await db`
    insert into oauth_consents (id, client_id, user_id, reference_id, scopes, created_at, updated_at)
    select ${connection}, ${clientId}, user_id, ${agent}, '["agent:read","agent:propose"]', now(), now()
    from account_members where account_id = ${accountId} and role = 'owner'`;
  return connection;
}
