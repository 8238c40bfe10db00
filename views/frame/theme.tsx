/** The color theme: the system's, or the one that the user has chosen. The server renders it, so no page flashes. */
import { Icon } from "../components/icon";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const texts: Record<Theme, string> = { system: "System", light: "Light", dark: "Dark" };

/** Sends the choice at once; without a script, too. */
export function ThemeSwitch({ theme }: { theme: Theme }) {
  return (
    <form method="post" action="/theme" class="theme-switch">
      <fieldset>
        <legend class="visually-hidden">Theme</legend>
        {themes.map((one) => (
          <button key={one} type="submit" name="theme" value={one} aria-pressed={one === theme}>
            <Icon name={one} />
            {texts[one]}
          </button>
        ))}
      </fieldset>
    </form>
  );
}
