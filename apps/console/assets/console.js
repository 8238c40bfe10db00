/*
 * The console's only script of its own: marks the page as scripted, shows the current tab, copies values at a click,
 * closes the account menu. Everything works without it.
 */
document.documentElement.classList.add("scripted");

/** On a narrow screen the tabs scroll: the one that one is at is seen. */
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

/** How long "Copied" is shown, in ms. */
const SHOWN_MS = 1600;

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  closeMenus(event.target);
  if (!button) return;
  const value = document.getElementById(button.dataset.copy);
  const before = button.innerHTML;
  try {
    await navigator.clipboard.writeText(value.textContent);
    button.textContent = "Copied";
  } catch {
    // No right to the clipboard (plain http, an old browser): select it, so that the keyboard can copy.
    getSelection().selectAllChildren(value);
    button.textContent = "Selected";
  }
  button.setAttribute("aria-live", "polite");
  setTimeout(() => {
    button.innerHTML = before;
  }, SHOWN_MS);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.menu[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

/** Switches say by themselves what they are; what is read out follows. */
document.addEventListener("change", (event) => {
  if (event.target.matches?.('[role="switch"]')) event.target.ariaChecked = String(event.target.checked);
});

function closeMenus(clicked) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(clicked)) menu.open = false;
  }
}

/** Parts that keep themselves up to date rest while nobody sees the page, and catch up at once. */
document.addEventListener("htmx:before:request", (event) => {
  const source = event.detail.ctx.sourceElement;
  if (document.hidden && source.matches("[data-live]")) event.preventDefault();
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const part of document.querySelectorAll("[data-live]")) htmx.trigger(part, "every");
});

/** What was asked for into a dialog is shown there. */
document.addEventListener("htmx:after:swap", (event) => {
  const dialog = event.detail.ctx?.target;
  if (dialog?.matches?.("[popover]") && !dialog.matches(":popover-open")) dialog.showPopover();
});
