/*
 * Values of charts: the title of the part under the pointer in a box of its own, at once, and without a pointer that of
 * the part that the arrow keys have reached.
 */
{
  const CHARTS = ".time-bars";
  const PART = ".time-bars > *";
  const box = document.createElement("div");
  box.className = "chart-value";
  box.role = "status";
  box.hidden = true;
  document.body.append(box);
  /** The part whose value is shown. */
  let shown;

  /** The browser would show a title once more; a refreshed chart has its titles again. */
  const textOfPart = (part) => {
    const title = part?.querySelector(":scope > title");
    if (title) {
      part.dataset.value = title.textContent;
      title.remove();
    }
    return part?.dataset.value;
  };
  const hide = () => {
    shown?.classList.remove("at");
    shown = undefined;
    box.hidden = true;
  };
  const show = (part) => {
    const value = textOfPart(part);
    if (!value) return hide();
    shown?.classList.remove("at");
    shown = part;
    part.classList.add("at");
    box.textContent = value;
    box.hidden = false;
    const { left, width } = part.getBoundingClientRect();
    const chart = part.closest(CHARTS).getBoundingClientRect();
    const most = document.documentElement.clientWidth - box.offsetWidth - 4;
    box.style.left = `${Math.max(4, Math.min(most, left + width / 2 - box.offsetWidth / 2))}px`;
    const above = chart.top - box.offsetHeight - 4;
    box.style.top = `${above > 4 ? above : chart.bottom + 4}px`;
  };

  document.addEventListener("pointerover", ({ target }) => {
    const part = target.closest?.(PART);
    if (part) show(part);
    else if (shown && !document.activeElement?.matches(CHARTS)) hide();
  });
  document.addEventListener("focusout", hide);
  addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => {
    const { target: chart, key } = event;
    if (!chart.matches?.(CHARTS) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Escape") return hide();
    const parts = [...chart.querySelectorAll(PART)].filter(
      (part) => part.querySelector("title") ?? part.dataset.value,
    );
    const at = parts.indexOf(shown);
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at < 0 ? parts.length - 1 : at - 1,
      Home: 0,
      End: parts.length - 1,
    }[key];
    const part = parts[Math.max(0, Math.min(parts.length - 1, to))];
    if (!part) return;
    event.preventDefault();
    // The pointer's way: another script writes the part's times in the browser's time zone.
    part.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  });
}
