/** The frame of every page: head, sidebar, main, foot. */
import type { ComponentChildren } from "preact";
import { type CurrentUser, can } from "../core/control/accounts";
import { Brand } from "./components/brand";
import { Footer } from "./frame/footer";
import { Palette } from "./frame/palette";
import type { NavItem } from "./frame/sections";
import { type CurrentBase, Sidebar, TopBar } from "./frame/sidebar";
import type { Theme } from "./frame/theme";
import { type Toast, Toasts } from "./frame/toasts";
import { ViewerNote } from "./frame/viewer-note";

/** The URLs of the assets; they contain hashes of the content. */
interface AssetUrls {
  font: string;
  style: string;
  htmx: string;
  script: string;
}

export interface PageProps {
  /** For the tab and the history: the page's title, without the product's name. */
  title: string;
  /** The current user; null when signed out, absent if unknown: then the page has no navigation. */
  currentUser?: CurrentUser | null | undefined;
  /** The section of the sidebar. */
  active?: NavItem | undefined;
  /** The base that the page is about, for the switcher. */
  base?: CurrentBase | undefined;
  /** `narrow` is for short forms. */
  width?: "wide" | "narrow" | undefined;
  theme?: Theme | undefined;
  toast?: Toast | undefined;
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

export function Page(props: PageProps) {
  const { title, currentUser, active, base, width = "wide", theme = "system", assets, children } = props;
  return (
    <html lang="en" data-theme={theme === "system" ? undefined : theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content={theme === "system" ? "light dark" : theme} />
        <meta name="robots" content="noindex" />
        <meta name="htmx-config" content={HTMX_CONFIG} />
        <title>{`${title} · Basetide`}</title>
        <link rel="icon" href={FAVICON} />
        <FontPreload href={assets.font} />
        <link rel="stylesheet" href={assets.style} />
        <script src={assets.htmx} defer />
        <script src={assets.script} defer />
      </head>
      <body class={currentUser ? "framed" : "plain"}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        {currentUser ? (
          <>
            <TopBar base={base} />
            <Sidebar currentUser={currentUser} active={active} base={base} theme={theme} />
          </>
        ) : (
          <VisitorBar isSignedOut={currentUser === null} />
        )}
        <div class="page">
          <main id="main" class={width} tabIndex={-1}>
            {/* Where htmx puts the error of a fragment's request. */}
            <div id="trouble" aria-live="assertive" />
            {currentUser && !can(currentUser.account.role, "write") ? (
              <ViewerNote account={currentUser.account.email} />
            ) : null}
            <Toasts toast={props.toast} />
            {children}
          </main>
          <Footer theme={theme} isSignedIn={Boolean(currentUser)} />
        </div>
        <div id="dialog" class="dialog" role="dialog" aria-labelledby="dialog-title" popover="auto" />
        {currentUser ? <Palette base={base} /> : null}
      </body>
    </html>
  );
}

/** Requested with the page, the typeface is there before the style sheet asks for it. Browsers fetch fonts without cookies. */
export function FontPreload({ href }: { href: string }) {
  return <link rel="preload" href={href} as="font" type="font/woff2" crossOrigin="anonymous" />;
}

function VisitorBar({ isSignedOut }: { isSignedOut: boolean }) {
  return (
    <header class="bar">
      <div class="bar-inner">
        <Brand />
        {isSignedOut ? (
          <nav aria-label="Account" class="places end">
            <a href="/sign-in">Sign in</a>
            <a href="/signup">Sign up</a>
          </nav>
        ) : null}
      </div>
    </header>
  );
}

export const FAVICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%230b6b6b'/%3E%3Cpath d='M4 10c3 0 3-2.5 5.3-2.5S12 10 14.7 10 17.400 7.500 20 7.500M4 16c3 0 3-2.500 5.300-2.500S12 16 14.700 16s2.700-2.500 5.300-2.500' fill='none' stroke='%23fff' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";
