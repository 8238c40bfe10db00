/** The console's pages as a browser requests them, without sign-in, which has its own tests. */
import type { Elysia } from "elysia";
import type { Auth } from "../../apps/console/auth/auth";
import type { Account, CurrentUser, Role } from "../../core/control/accounts";

const ACCOUNT_HEADER = "x-test-account";

/** Signs in the user that `asker` names, and sends no mail. */
export function authByHeader(): Auth {
  const currentUser = async (request: Request) => {
    const account = JSON.parse(request.headers.get(ACCOUNT_HEADER) ?? "null") as
      | (Account & { role?: Role })
      | null;
    return { currentUser: account && currentUserOf(account), cookies: [] };
  };
  return { currentUser, notify: () => {}, providers: { list: [] } } as unknown as Auth;
}

export interface Ask {
  /** The account that sends the request; none unless given. */
  account?: Account;
  /** Of the person in that account; owner unless given. */
  role?: Role;
  /** Sent as a form. */
  form?: Record<string, string>;
  isHtmx?: boolean;
  cookie?: string;
  /** What the browser reports about a form's origin. */
  from?: "same-origin" | "cross-site";
  /** Aborts when the browser leaves. */
  signal?: AbortSignal;
}

/** Requests a page of the app, or sends it a form, as a browser does. */
export function asker(app: Pick<Elysia, "handle">) {
  return async (
    path: string,
    { account, role, form, isHtmx, cookie, from = "same-origin", signal }: Ask = {},
  ) => {
    const headers = new Headers({ accept: "text/html", "sec-fetch-site": from });
    if (account) {
      const { id, email, isOperator } = account;
      headers.set(ACCOUNT_HEADER, JSON.stringify({ id, email, isOperator, role }));
    }
    if (cookie) headers.set("cookie", cookie);
    if (isHtmx) headers.set("hx-request", "true");
    const method = form ? "POST" : "GET";
    const body = form && new URLSearchParams(form);
    const request = new Request(`http://console${path}`, {
      method,
      headers,
      body,
      ...(signal && { signal }),
    });
    const response = await app.handle(request);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
}

function currentUserOf({ role = "owner", ...account }: Account & { role?: Role }): CurrentUser {
  const own = { ...account, role };
  return {
    userId: "usr_test",
    sessionId: "ses_test",
    email: account.email,
    isEmailVerified: true,
    account: own,
    accounts: [own],
  };
}
