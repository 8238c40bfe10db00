/** An admin role like those of managed servers: it may create databases and roles, and is not a superuser. */
import { inject } from "vitest";
import { asAdmin } from "./admin";

export interface PlainAdmin {
  url: string;
  name: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Everything that it creates must be dropped before it is disposed of. */
export async function plainAdmin(): Promise<PlainAdmin> {
  const name = `bt_admin_${crypto.randomUUID().slice(0, 8)}`;
  await asAdmin(async (sql) => {
    await sql.unsafe(`create role ${name} login createdb createrole password 'admin'`);
    // Another test may have revoked access to the server's own database meanwhile.
    await sql.unsafe(`grant connect on database ${sql.options.database} to ${name}`);
  });
  const url = Object.assign(new URL(inject("postgresUrl")), { username: name, password: "admin" }).href;
  return {
    url,
    name,
    [Symbol.asyncDispose]: () =>
      asAdmin(async (sql) => void (await sql.unsafe(`drop owned by ${name}; drop role ${name}`))),
  };
}
