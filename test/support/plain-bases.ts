/** Bases without a replica or a source, for tests of the control plane's work with them. */
import { newId } from "../../core/ids";
import type { TestControl } from "./control-support";

/** @returns their ids */
export async function addPlainBases(control: TestControl, count: number): Promise<string[]> {
  const { db } = control.ctx;
  const { id: accountId } = await control.addAccount(`${crypto.randomUUID()}@example.com`);
  const made = Array.from({ length: count }, () => newId("base"));
  const databaseId = newId("database");
  await db`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select ${databaseId}, ${accountId}, id, ${databaseId}, ${databaseId}, 'x' from clusters limit 1`;
  for (const id of made) {
    await db`
      insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name)
      values (${id}, ${accountId}, 'airtable', ${id}, ${id}, 'x', ${databaseId}, ${id})`;
  }
  return made;
}
