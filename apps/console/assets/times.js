/*
 * Writes times in the browser's time zone; the page has them in UTC. The forms are those of `views/format.ts`. Parts
 * that are inserted or refreshed later are rewritten before they are drawn.
 */
{
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (number) => String(number).padStart(2, "0");

  const ofUtc = (at) => {
    const iso = at.toISOString();
    return { date: iso.slice(0, 10), time: iso.slice(11, 19), day: at.getUTCDate(), month: at.getUTCMonth() };
  };
  const ofHere = (at) => ({
    date: `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`,
    time: `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`,
    day: at.getDate(),
    month: at.getMonth(),
  });
  const forms = {
    full: ({ date, time }) => `${date} ${time}`,
    minute: ({ date, time }) => `${date} ${time.slice(0, 5)}`,
    date: ({ date }) => date,
    clock: ({ time }) => time.slice(0, 5),
    bare: ({ time }) => time.slice(0, 5),
    bareDay: ({ day, month, time }) => `${day} ${MONTHS[month]} ${time.slice(0, 5)}`,
  };

  /** A time of today in UTC may be one of yesterday here. */
  const here = (at, form) => {
    const parts = ofHere(at);
    const isOtherDay = form === "clock" && parts.date !== ofHere(new Date()).date;
    return forms[isOtherDay ? "minute" : form](parts);
  };

  const write = (element) => {
    const form = element.dataset.form;
    const at = new Date(element.dateTime);
    if (!forms[form] || Number.isNaN(at.getTime())) return;
    const text = here(at, form);
    if (element.textContent !== text) element.textContent = text;
  };

  const writeAll = (part) => {
    if (part.matches?.("time[data-form]")) write(part);
    for (const element of part.querySelectorAll?.("time[data-form]") ?? []) write(element);
  };

  // Somewhere in UTC all year round, the page is right as it is.
  const year = new Date().getFullYear();
  if ([0, 6].some((month) => new Date(year, month).getTimezoneOffset() !== 0)) begin();

  function begin() {
    document.documentElement.classList.add("local-times");
    writeAll(document.body);
    new MutationObserver((changes) => {
      for (const { target, addedNodes } of changes) {
        const time = (target.nodeType === Node.TEXT_NODE ? target.parentElement : target)?.closest?.("time");
        if (time) writeAll(time);
        for (const node of addedNodes) writeAll(node);
      }
    }).observe(document.body, { childList: true, subtree: true, characterData: true });

    document.addEventListener("pointerover", ({ target }) => {
      const ago = target.closest?.("time:not([data-form])");
      if (ago && !ago.title.includes("(")) {
        const at = new Date(ago.dateTime);
        if (!Number.isNaN(at.getTime())) ago.title = `${forms.full(ofHere(at))} (${ago.title})`;
      }
      // The tooltip of a chart's part, or of the group around it.
      const title =
        target.querySelector?.(":scope > title") ?? target.parentElement?.querySelector(":scope > title");
      if (title?.dataset.at) localize(title);
    });
  }

  function localize(title) {
    const form = forms[title.dataset.form];
    let [done, rest] = ["", title.textContent];
    // In their order: one in local time may look as the next one does in UTC.
    for (const iso of title.dataset.at.split(" ")) {
      const at = new Date(iso);
      const utc = form(ofUtc(at));
      const place = rest.indexOf(utc);
      if (place < 0) continue;
      done += rest.slice(0, place) + form(ofHere(at));
      rest = rest.slice(place + utc.length);
    }
    title.textContent = (done + rest).replace(" UTC", "");
    // Once: the text no longer has the times in UTC.
    delete title.dataset.at;
  }
}
