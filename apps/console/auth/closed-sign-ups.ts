/**
 * Decides who may sign up while sign-ups are closed: the first user of the installation, and users with an invitation.
 */
import type { Db } from "../../../core/context";
import { linkedInvitations } from "../../../core/control/members";

/** @param next the page to open after the sign-up; an invitation's page has its token */
export async function maySignUp(db: Db, email: string, next: string): Promise<boolean> {
  const [row] = await db<{ is_first: boolean }[]>`select not exists(select from users) as is_first`;
  if (row!.is_first) return true;
  const url = URL.parse(next, "http://console");
  const token = url?.pathname === "/invitation" ? url.searchParams.get("token") : null;
  if (token === null) return false;
  return (await linkedInvitations(db)(token))?.email === email.trim().toLowerCase();
}
