/*
 * Keyboard shortcuts. The sheet is the table: each of its rows has the keys, and where they lead or what they do. Never
 * while something is typed, or a dialog is open.
 */
{
  const sheet = document.getElementById("shortcuts");
  /** The time for the second key of two, ms. */
  const SECOND_KEY_MS = 1500;
  const OFF = "basetide.noShortcuts";
  const FIELDS = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=textbox]";
  /** The links of the rows of a page's first table. */
  const ROWS = "main tbody th[scope=row] a:first-of-type";

  if (sheet) begin();

  function begin() {
    const rows = [...sheet.querySelectorAll("[data-keys]")];
    const switcher = sheet.querySelector("[data-shortcuts-switch]");
    let first = "";
    let firstAt = 0;
    switcher.checked = localStorage.getItem(OFF) === null;
    switcher.addEventListener("change", () => {
      if (switcher.checked) localStorage.removeItem(OFF);
      else localStorage.setItem(OFF, "1");
    });
    if (navigator.platform.startsWith("Mac")) {
      for (const key of sheet.querySelectorAll("[data-modifier]")) key.textContent = "⌘";
    }

    const step = (by) => {
      const links = [...document.querySelectorAll(ROWS)];
      if (links.length === 0) return;
      const at = links.indexOf(document.activeElement);
      const next =
        at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
      links[next].focus();
      links[next].scrollIntoView({ block: "nearest" });
    };
    const show = () => {
      const sidebar = document.getElementById("sidebar");
      if (sidebar?.matches(":popover-open")) sidebar.hidePopover();
      sheet.showModal();
    };
    const deeds = {
      search: () => document.dispatchEvent(new Event("basetide:search")),
      help: show,
      next: () => step(1),
      previous: () => step(-1),
    };

    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented)
        return;
      if (!switcher.checked || event.key.length !== 1) return;
      const isElsewhere = event.target.closest?.(FIELDS) || document.querySelector("dialog[open]");
      if (isElsewhere || document.getElementById("dialog")?.matches(":popover-open")) return;
      const isSecond = first !== "" && Date.now() - firstAt < SECOND_KEY_MS;
      const keys = isSecond ? `${first} ${event.key}` : event.key;
      const row = rows.find((one) => one.dataset.keys === keys);
      first = !isSecond && rows.some((one) => one.dataset.keys.startsWith(`${event.key} `)) ? event.key : "";
      firstAt = Date.now();
      if (!row) return;
      event.preventDefault();
      if (row.dataset.href) location.assign(row.dataset.href);
      else deeds[row.dataset.does]();
    });

    document.addEventListener("click", (event) => {
      if (event.target === sheet) sheet.close();
      if (event.target.closest?.("[data-shortcuts]")) show();
    });
  }
}
