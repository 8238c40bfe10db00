/** The frame of the public pages, landing and documentation: head, bar, foot. They show nothing of an account. */
import type { ComponentChildren } from "preact";
import { Brand } from "../components/brand";
import { type Theme, ThemeSwitch } from "../frame/theme";
import { FAVICON } from "../layout";
import { SearchForm } from "./search-form";

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

export interface SiteAssets {
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
            <a class="brand" href="/" aria-label="Basetide, home">
              <Brand />
            </a>
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
