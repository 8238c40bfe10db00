/** Whether a role's credentials work. */
import postgres from "postgres";

/** Returns whether a login with this URL is accepted. */
export async function canLogIn(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return sql`select 1`
    .then(
      () => true,
      () => false,
    )
    .finally(() => sql.end({ timeout: 1 }));
}
