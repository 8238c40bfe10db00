/**
 * The command palette and the sheet of shortcuts. Both are closed until the console's script opens them; without a
 * script, the sidebar leads to the page of the search.
 */
import { Icon } from "../components/icon";
import { ShortcutSheet } from "./shortcuts";
import type { CurrentBase } from "./sidebar";

export function Palette({ base }: { base: CurrentBase | undefined }) {
  return (
    <>
      <dialog id="palette" class="palette" aria-label="Search" data-base={base?.id}>
        <div class="palette-head">
          <Icon name="search" />
          <input
            id="palette-input"
            type="text"
            role="combobox"
            aria-label="Search bases, tables, columns, settings, docs and actions"
            aria-expanded="false"
            aria-controls="palette-list"
            aria-autocomplete="list"
            placeholder="Search or jump to…"
            maxLength={200}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
          />
          <kbd>Esc</kbd>
        </div>
        <div id="palette-list" class="palette-list" role="listbox" aria-label="Results" />
        <p class="palette-status muted small" role="status" />
      </dialog>
      <ShortcutSheet base={base} />
    </>
  );
}

/** In the sidebar; leads to the page of the search unless the script opens the palette. */
export function SearchLink({ isCurrent }: { isCurrent: boolean }) {
  return (
    <a class="search-link" href="/search" data-palette="" aria-current={isCurrent ? "page" : undefined}>
      <Icon name="search" />
      Search
      <span class="kbd needs-script" aria-hidden="true">
        /
      </span>
    </a>
  );
}
