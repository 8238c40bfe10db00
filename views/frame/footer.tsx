/** The foot of every page: help, and for visitors the theme. */
import { type Theme, ThemeSwitch } from "./theme";

const links: [string, string][] = [
  ["/docs", "Docs"],
  ["/docs/api", "API reference"],
  ["/docs/changelog", "Changelog"],
];

export function Footer({ theme, isSignedIn }: { theme: Theme; isSignedIn: boolean }) {
  return (
    <footer class="foot">
      <nav aria-label="Help">
        {links.map(([href, text]) => (
          <a key={href} href={href}>
            {text}
          </a>
        ))}
      </nav>
      {isSignedIn ? null : <ThemeSwitch theme={theme} />}
    </footer>
  );
}
