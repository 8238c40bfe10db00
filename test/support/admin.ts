/** Access to the test server as its superuser. */
import postgres from "postgres";
import { inject } from "vitest";
import { KNOWN_TYPES } from "./known-types";

/** Runs `work` on one connection to the server's own database; to the test server's unless given. */
export async function asAdmin<T>(
  work: (admin: postgres.Sql) => Promise<T>,
  url = inject("postgresUrl"),
): Promise<T> {
  const admin = postgres(url, { max: 1, onnotice: () => {}, ...KNOWN_TYPES });
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}

/** Returns the superuser's URL of the database that `url` names. */
export function superuserUrl(url: string): string {
  return Object.assign(new URL(inject("postgresUrl")), { pathname: new URL(url).pathname }).href;
}

/** Refuses all connections to the database until the returned function is called. */
export async function shutDatabase(url: string): Promise<() => Promise<void>> {
  const database = new URL(url).pathname.slice(1);
  const allow = (isAllowed: boolean) =>
    asAdmin(async (admin) => {
      await admin.unsafe(`alter database ${database} allow_connections ${isAllowed}`);
      if (!isAllowed)
        await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${database}`;
    });
  await allow(false);
  return () => allow(true);
}
