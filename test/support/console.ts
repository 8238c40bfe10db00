/** The console's pages as a browser asks for them, without signing in: that has tests of its own. */
import type { Elysia } from "elysia";
import type { Auth } from "../../apps/console/auth/auth";
import type { Account, CurrentUser } from "../../core/control/accounts";

const ACCOUNT_HEADER = "x-test-account";

/** Signs in whoever `asker` names, and sends no mail. */
export function authByHeader(): Auth {
  const currentUser = async (request: Request) => {
    const account = JSON.parse(request.headers.get(ACCOUNT_HEADER) ?? "null") as Account | null;
    return { currentUser: account && currentUserOf(account), cookies: [] };
  };
  return { currentUser, notify: () => {} } as Partial<Auth> as Auth;
}

export interface Ask {
  /** Who asks; nobody unless given. */
  account?: Account;
  /** Sent as a form. */
  form?: Record<string, string>;
  isHtmx?: boolean;
  /** What the browser says of where a form comes from. */
  from?: "same-origin" | "cross-site";
}

/** Asks the app for a page, or sends it a form, as a browser does. */
export function asker(app: Pick<Elysia, "handle">) {
  return async (path: string, { account, form, isHtmx, from = "same-origin" }: Ask = {}) => {
    const headers = new Headers({ accept: "text/html", "sec-fetch-site": from });
    if (account) {
      const { id, email, isOperator } = account;
      headers.set(ACCOUNT_HEADER, JSON.stringify({ id, email, isOperator }));
    }
    if (isHtmx) headers.set("hx-request", "true");
    const method = form ? "POST" : "GET";
    const body = form && new URLSearchParams(form);
    const response = await app.handle(new Request(`http://console${path}`, { method, headers, body }));
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
}

function currentUserOf(account: Account): CurrentUser {
  const own = { ...account, role: "owner" as const };
  return {
    userId: "usr_test",
    sessionId: "ses_test",
    email: account.email,
    isEmailVerified: true,
    account: own,
    accounts: [own],
  };
}
