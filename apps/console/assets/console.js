/*
 * The console's only script of its own: marks the page as scripted, shows the current tab, copies values on a click,
 * shows passwords on request, closes the account menu. Every page also works without it.
 */
document.documentElement.classList.add("scripted");

/** On a narrow screen the tabs scroll: shows the current one. */
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

/** How long "Copied" is shown, in ms. */
const SHOWN_MS = 1600;

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  closeMenus(event.target);
  if (!button) return;
  const { copy } = button.dataset;
  const value = copy ? document.getElementById(copy) : button.closest("figure").querySelector("code");
  const before = button.innerHTML;
  try {
    await navigator.clipboard.writeText(value.textContent);
    button.textContent = "Copied";
  } catch {
    // No access to the clipboard (plain http, an old browser): select the value, so that the keyboard can copy it.
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

/** Updates the state of a switch that screen readers announce. */
document.addEventListener("change", (event) => {
  if (event.target.matches?.('[role="switch"]')) event.target.ariaChecked = String(event.target.checked);
});

/** Shows what is typed into a password field, until its form is sent: browsers keep what other fields contain. */
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-shows]");
  if (button) showTyped(button, button.ariaPressed !== "true");
});
document.addEventListener(
  "submit",
  (event) => {
    for (const button of event.target.querySelectorAll("[data-shows]")) showTyped(button, false);
  },
  true,
);

function showTyped(button, isShown) {
  document.getElementById(button.dataset.shows).type = isShown ? "text" : "password";
  button.ariaPressed = String(isShown);
}

function closeMenus(clicked) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(clicked)) menu.open = false;
  }
}

/** Pauses parts that refresh themselves while the page is hidden, and refreshes them when it is shown. */
document.addEventListener("htmx:before:request", (event) => {
  const source = event.detail.ctx.sourceElement;
  if (document.hidden && source.matches("[data-live]")) event.preventDefault();
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const part of document.querySelectorAll("[data-live]")) htmx.trigger(part, "every");
});

/** Opens the dialog into which content was loaded. */
document.addEventListener("htmx:after:swap", (event) => {
  const dialog = event.detail.ctx?.target;
  if (dialog?.matches?.("[popover]") && !dialog.matches(":popover-open")) dialog.showPopover();
});

/** A switch whose question was not answered returns to what is saved. */
document.getElementById("dialog")?.addEventListener("toggle", (event) => {
  if (event.newState !== "closed") return;
  for (const form of document.querySelectorAll("form[data-asks]")) {
    form.reset();
    for (const one of form.querySelectorAll('[role="switch"]')) one.ariaChecked = String(one.checked);
  }
});

/** How long a toast is shown, in ms; one about an error stays until it is closed. */
const TOAST_MS = 7000;

function dismissToasts() {
  for (const toast of document.querySelectorAll("#toasts .toast.good:not([data-timed])")) {
    toast.dataset.timed = "";
    const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : toast.remove());
    setTimeout(leave, TOAST_MS);
  }
}
dismissToasts();
document.addEventListener("htmx:after:swap", dismissToasts);
document.addEventListener("click", (event) =>
  event.target.closest?.("[data-close-toast]")?.closest(".toast").remove(),
);

/** The page after the sign-in gets the fragment of the address, which may be a query: browsers keep it when redirected. */
for (const form of location.hash ? document.querySelectorAll('form[action^="/sign-in"]') : []) {
  form.action += location.hash;
}
