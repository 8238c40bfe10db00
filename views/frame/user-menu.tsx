/** The menu of the current user: theme, other accounts, sign-out. */
import type { CurrentUser } from "../../core/control/accounts";
import { type Theme, ThemeSwitch } from "./theme";

export function UserMenu({ currentUser, theme }: { currentUser: CurrentUser; theme: Theme }) {
  const { account, accounts, email } = currentUser;
  const others = accounts.filter((one) => one.id !== account.id);
  return (
    <details class="menu up">
      <summary>
        <span class="avatar" aria-hidden="true">
          {email.slice(0, 1)}
        </span>
        <span class="visually-hidden">Account: </span>
        <span class="menu-name" title={account.email}>
          {account.email}
        </span>
      </summary>
      <div class="menu-items">
        <p class="muted small">Signed in as {email}</p>
        <ThemeSwitch theme={theme} />
        {others.map((one) => (
          <form key={one.id} method="post" action="/account/switch">
            <input type="hidden" name="account" value={one.id} />
            <button type="submit">Switch to {one.email}</button>
          </form>
        ))}
        <form method="post" action="/sign-out">
          <button type="submit">Sign out</button>
        </form>
      </div>
    </details>
  );
}
