/** The frame of every page: head, bar with navigation and account, main. */
import type { ComponentChildren } from "preact";
import type { CurrentUser } from "../core/control/accounts";
import { Brand } from "./components/brand";

/** The links of the bar. */
type NavItem = "bases" | "requests" | "operator" | "account";

/** The URLs of the assets; they contain hashes of the content. */
interface AssetUrls {
  style: string;
  htmx: string;
  script: string;
}

export interface PageProps {
  /** For the tab and the history: the page's title, without the product's name. */
  title: string;
  /** The current user; null when signed out, absent if unknown: then the bar has no links. */
  currentUser?: CurrentUser | null | undefined;
  active?: NavItem | undefined;
  /** `narrow` is for short forms. */
  width?: "wide" | "narrow" | undefined;
  assets: AssetUrls;
  children: ComponentChildren;
}

/** htmx's own indicator styles would be an inline style sheet; ours are in the stylesheet. */
const HTMX_CONFIG = JSON.stringify({
  includeIndicatorCSS: false,
  history: false,
  defaultTimeout: 30_000,
  // A refreshed part stays open if the user has opened it.
  morphIgnore: ["data-htmx-powered", "open"],
});

export function Page({ title, currentUser, active, width = "wide", assets, children }: PageProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <meta name="htmx-config" content={HTMX_CONFIG} />
        <title>{`${title} · Basetide`}</title>
        <link rel="icon" href={FAVICON} />
        <link rel="stylesheet" href={assets.style} />
        <script src={assets.htmx} defer />
        <script src={assets.script} defer />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header class="bar">
          <div class="bar-inner">
            <a class="brand" href="/" aria-label="Basetide, home">
              <Brand />
            </a>
            {currentUser ? <Navigation currentUser={currentUser} active={active} /> : null}
            {currentUser === null ? <SignedOut /> : null}
          </div>
        </header>
        <main id="main" class={width} tabIndex={-1}>
          {/* Where htmx puts the error of a fragment's request. */}
          <div id="trouble" aria-live="assertive" />
          {children}
        </main>
      </body>
    </html>
  );
}

function Navigation({ currentUser, active }: { currentUser: CurrentUser; active: NavItem | undefined }) {
  const places: [NavItem, string, string][] = [
    ["bases", "/bases", "Bases"],
    ["requests", "/requests", "Requests"],
    ...(currentUser.account.isOperator
      ? [["operator", "/operator", "Operator"] as [NavItem, string, string]]
      : []),
  ];
  return (
    <>
      <nav aria-label="Main" class="places">
        {places.map(([place, href, name]) => (
          <a key={place} href={href} aria-current={place === active ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <details class="menu">
        <summary>
          <span class="avatar" aria-hidden="true">
            {currentUser.email.slice(0, 1)}
          </span>
          <span class="visually-hidden">Account: </span>
          <span class="menu-name" title={currentUser.account.email}>
            {currentUser.account.email}
          </span>
        </summary>
        <AccountMenu currentUser={currentUser} />
      </details>
    </>
  );
}

function AccountMenu({ currentUser }: { currentUser: CurrentUser }) {
  const others = currentUser.accounts.filter((account) => account.id !== currentUser.account.id);
  return (
    <div class="menu-items">
      <p class="muted small">Signed in as {currentUser.email}</p>
      <a href="/account">Sign-in and sessions</a>
      <a href="/account/members">Members</a>
      <a href="/account/workspaces">Workspaces and call budgets</a>
      <a href="/account/alerts">Alerts</a>
      <a href="/account/tokens">API tokens</a>
      <a href="/account/activity">Activity</a>
      {others.map((account) => (
        <form key={account.id} method="post" action="/account/switch">
          <input type="hidden" name="account" value={account.id} />
          <button type="submit">Switch to {account.email}</button>
        </form>
      ))}
      <form method="post" action="/sign-out">
        <button type="submit">Sign out</button>
      </form>
    </div>
  );
}

function SignedOut() {
  return (
    <nav aria-label="Account" class="places end">
      <a href="/sign-in">Sign in</a>
      <a href="/signup">Sign up</a>
    </nav>
  );
}

const FAVICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%230b6b6b'/%3E%3Cpath d='M4 10c3 0 3-2.5 5.3-2.5S12 10 14.7 10 17.400 7.500 20 7.500M4 16c3 0 3-2.500 5.300-2.500S12 16 14.700 16s2.700-2.500 5.300-2.500' fill='none' stroke='%23fff' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";
