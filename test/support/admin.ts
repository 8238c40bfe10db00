/** The test server as its superuser has it. */
import postgres from "postgres";
import { inject } from "vitest";

/** Runs `work` on one connection of the server's own database. */
export async function asAdmin<T>(work: (admin: postgres.Sql) => Promise<T>): Promise<T> {
  const admin = postgres(inject("postgresUrl"), { max: 1, onnotice: () => {} });
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}
