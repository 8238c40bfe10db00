/** The frame of the public pages, landing and documentation: head, bar, foot. They show nothing of an account. */
import type { ComponentChildren } from "preact";
import { Brand } from "../components/brand";
import { type Theme, ThemeSwitch } from "../frame/theme";
import { FAVICON, FontPreload } from "../layout";

export interface SiteProps {
  /** Whole, for the tab. */
  title: string;
  description: string;
  active?: "docs" | "api" | undefined;
  theme: Theme;
  /** With closed registrations, visitors can only sign in. */
  canSignUp: boolean;
  /** Of a browser with a session. */
  isSignedIn?: boolean;
  assets: SiteAssets;
  children: ComponentChildren;
}

interface SiteAssets {
  font: string;
  style: string;
  siteStyle: string;
  script: string;
}

export function SitePage(props: SiteProps) {
  const { title, description, active, theme, assets, children } = props;
  return (
    <html lang="en" data-theme={theme === "system" ? undefined : theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content={theme === "system" ? "light dark" : theme} />
        <meta name="description" content={description} />
        <title>{title}</title>
        <link rel="icon" href={FAVICON} />
        <FontPreload href={assets.font} />
        <link rel="stylesheet" href={assets.style} />
        <link rel="stylesheet" href={assets.siteStyle} />
        <script src={assets.script} defer />
      </head>
      <body class="site">
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header class="site-bar">
          <div class="site-bar-inner">
            <Brand />
            <nav aria-label="Main" class="site-nav">
              <a href="/docs" aria-current={active === "docs" ? "page" : undefined}>
                Docs
              </a>
              <a href="/docs/api" aria-current={active === "api" ? "page" : undefined}>
                API
              </a>
              <a href="/docs/search" class="site-search-link">
                Search
              </a>
            </nav>
            <SearchForm query="" isInBar />
            <WaysIn {...props} />
          </div>
        </header>
        {children}
        <SiteFooter theme={theme} />
      </body>
    </html>
  );
}

function WaysIn({ canSignUp, isSignedIn = false }: Pick<SiteProps, "canSignUp" | "isSignedIn">) {
  return (
    <nav aria-label="Account" class="site-account">
      {isSignedIn ? (
        <a class="button small" href="/bases">
          Open console
        </a>
      ) : (
        <a class="site-sign-in" href="/sign-in">
          Sign in
        </a>
      )}
      {canSignUp && !isSignedIn ? (
        <a class="button primary small" href="/signup">
          Sign up
        </a>
      ) : null}
    </nav>
  );
}

const LINKS: [string, string][] = [
  ["/docs/quick-start", "Quick start"],
  ["/docs", "Docs"],
  ["/docs/api", "API reference"],
  ["/docs/security", "Security"],
  ["/docs/changelog", "Changelog"],
];

function SiteFooter({ theme }: { theme: Theme }) {
  return (
    <footer class="site-foot">
      <div class="site-foot-inner">
        <nav aria-label="Help">
          {LINKS.map(([href, text]) => (
            <a key={href} href={href}>
              {text}
            </a>
          ))}
        </nav>
        <ThemeSwitch theme={theme} />
      </div>
    </footer>
  );
}

/** The search of the documentation: a form, answered with a page. */
export function SearchForm(props: { query: string; isInBar?: boolean; autofocus?: boolean }) {
  const { query, isInBar, autofocus } = props;
  return (
    <search class={isInBar ? "site-search in-bar" : "site-search"}>
      <form method="get" action="/docs/search">
        <input
          type="search"
          name="q"
          value={query}
          placeholder="Search the docs"
          aria-label="Search the docs"
          maxLength={200}
          autocomplete="off"
          autofocus={autofocus}
        />
        <button type="submit" aria-label="Search">
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
            <path d="M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9ZM10.300 10.300 14 14" />
          </svg>
        </button>
      </form>
    </search>
  );
}
