/*
 * The command palette: asks the server for what matches, and moves through it by keyboard. The focus stays in the
 * field, which names the current option to screen readers.
 */
{
  const palette = document.getElementById("palette");
  /** A pause in typing that is long enough to ask, ms. */
  const PAUSE_MS = 90;
  const LAST_BASE = "basetide.lastBase";

  if (palette) begin();

  function begin() {
    const input = palette.querySelector("[role=combobox]");
    const list = palette.querySelector("[role=listbox]");
    const status = palette.querySelector("[role=status]");
    let kind = "";
    let timer;
    /** The request that is under way, if any. */
    let asking;

    // On a page of the account, the actions and settings are those of the base that was open last.
    if (palette.dataset.base) sessionStorage.setItem(LAST_BASE, palette.dataset.base);
    const base = palette.dataset.base ?? sessionStorage.getItem(LAST_BASE) ?? "";

    const options = () => [...list.querySelectorAll("[role=option]")];
    const current = () => list.querySelector("[aria-selected=true]");

    const select = (option) => {
      current()?.setAttribute("aria-selected", "false");
      if (!option) return input.removeAttribute("aria-activedescendant");
      option.setAttribute("aria-selected", "true");
      option.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", option.id);
    };

    const move = (by) => {
      const all = options();
      if (all.length === 0) return;
      const at = all.indexOf(current());
      select(all[(at + by + all.length) % all.length]);
    };

    const say = (text, isShown) => {
      status.textContent = text;
      status.classList.toggle("visually-hidden", !isShown);
    };

    const ask = async () => {
      asking?.abort();
      const request = new AbortController();
      asking = request;
      const query = input.value;
      try {
        const response = await fetch(`/search?${new URLSearchParams({ q: query, base, kind })}`, {
          headers: { "hx-request": "true", "hx-current-url": location.href },
          signal: request.signal,
        });
        // A session that has ended: the page of the search leads to the sign-in.
        if (response.headers.has("hx-redirect")) return location.assign("/search");
        if (!response.ok) throw new Error(String(response.status));
        list.innerHTML = await response.text();
        const count = options().length;
        input.setAttribute("aria-expanded", String(count > 0));
        select(options()[0]);
        if (count > 0) say(`${count} ${count === 1 ? "result" : "results"}`, false);
        else say(`Nothing matches “${query.trim()}”. Try fewer or shorter words.`, true);
        palette.dataset.shown = query;
      } catch (error) {
        if (error.name !== "AbortError") say("The search did not answer. Try again.", true);
      } finally {
        if (asking === request) asking = undefined;
      }
    };

    const open = (chosen = "") => {
      document.getElementById("shortcuts").close();
      const sidebar = document.getElementById("sidebar");
      if (sidebar?.matches(":popover-open")) sidebar.hidePopover();
      if (palette.open) return;
      kind = chosen;
      input.value = "";
      input.placeholder = kind === "base" ? "Switch to a base…" : "Search or jump to…";
      list.replaceChildren();
      select();
      say("", false);
      palette.showModal();
      input.focus();
      ask();
    };
    document.addEventListener("basetide:search", () => open());

    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(ask, PAUSE_MS);
    });

    input.addEventListener("keydown", async (event) => {
      const isPlain = !event.metaKey && !event.altKey && !event.shiftKey;
      if (event.key === "ArrowDown" || (event.ctrlKey && event.key === "n")) move(1);
      else if (event.key === "ArrowUp" || (event.ctrlKey && event.key === "p")) move(-1);
      else if (event.key === "Enter" && isPlain && !event.isComposing) {
        event.preventDefault();
        clearTimeout(timer);
        // Typed faster than it was asked: what is shown belongs to an older query.
        if (palette.dataset.shown !== input.value) await ask();
        current()?.click();
        return;
      } else return;
      event.preventDefault();
    });

    // The option under the pointer is the current one, but not because the list has moved under it.
    list.addEventListener("pointermove", (event) => {
      const option = event.target.closest("[role=option]");
      if (option && option !== current()) select(option);
    });

    palette.addEventListener("click", (event) => {
      if (event.target === palette) palette.close();
      // A link to another part of this page leaves the page open.
      if (event.target.closest("[role=option]")) palette.close();
    });
    palette.addEventListener("close", () => {
      clearTimeout(timer);
      asking?.abort();
    });

    document.addEventListener("click", (event) => {
      const opener = event.target.closest?.("[data-palette]");
      if (!opener || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      open(opener.dataset.palette);
    });

    document.addEventListener("keydown", (event) => {
      const isMac = navigator.platform.startsWith("Mac");
      const isCommand = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
      if (!isCommand || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
      event.preventDefault();
      if (palette.open) palette.close();
      else open();
    });
  }
}
