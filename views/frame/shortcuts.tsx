/**
 * The keyboard shortcuts: one table, from which the sheet is made. The console's script reads the keys and what they do
 * from the sheet, so both always agree.
 */
import { basePlaces } from "../base/pages";
import { useMay } from "../components";
import { sections } from "./sections";
import type { CurrentBase } from "./sidebar";

/** What the script does itself, by the name in `data-does`. */
type Deed = "search" | "help" | "next" | "previous";

interface Shortcut {
  /** Pressed one after the other, with spaces between them. */
  keys: string;
  text: string;
  /** Where it leads, or what it does. */
  href?: string;
  does?: Deed;
}

const general: Shortcut[] = [
  { keys: "/", text: "Search", does: "search" },
  { keys: "?", text: "Show the shortcuts", does: "help" },
  { keys: "j", text: "Next row", does: "next" },
  { keys: "k", text: "Previous row", does: "previous" },
  { keys: "n", text: "Connect a base", href: "/new" },
];

const places: Shortcut[] = [
  ...sections.flatMap(({ key, text, href }) => (key ? [{ keys: `g ${key}`, text, href }] : [])),
  { keys: "g d", text: "Docs", href: "/docs" },
];

/** By heading. */
function shortcutsOf(base: Pick<CurrentBase, "id"> | undefined): [string, Shortcut[]][] {
  const own = basePlaces.map(({ key, text, longText, suffix }) => ({
    keys: `b ${key}`,
    text: longText ?? text,
    href: `/bases/${base?.id}${suffix}`,
  }));
  return [
    ["Everywhere", general],
    ["Go to", places],
    ...(base ? [["This base", own] as [string, Shortcut[]]] : []),
  ];
}

export function ShortcutSheet({ base }: { base: CurrentBase | undefined }) {
  const may = useMay();
  return (
    <dialog id="shortcuts" class="sheet" aria-labelledby="shortcuts-title">
      <div class="dialog-head">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <form method="dialog">
          <button type="submit" class="button quiet small">
            Close
          </button>
        </form>
      </div>
      <div class="sheet-groups">
        {shortcutsOf(base).map(([heading, shortcuts]) => (
          <section key={heading}>
            <h3>{heading}</h3>
            <dl>
              {shortcuts
                .filter(({ href }) => !href || may("GET", href))
                .map(({ keys, text, href, does }) => (
                  <div key={keys} data-keys={keys} data-href={href} data-does={does}>
                    <dt>{text}</dt>
                    <dd>
                      {keys.split(" ").map((key, index) => (
                        <kbd key={`${key} ${index}`}>{key}</kbd>
                      ))}
                      {does === "search" ? (
                        <>
                          <span class="muted">or</span>
                          <kbd data-modifier>Ctrl</kbd>
                          <kbd>k</kbd>
                        </>
                      ) : null}
                    </dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
      <label class="sheet-switch">
        <input type="checkbox" data-shortcuts-switch checked /> Use shortcuts of single keys in this browser
      </label>
    </dialog>
  );
}
