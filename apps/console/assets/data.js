/*
 * The data browser: keeps the open record in the address, and moves a cursor over the cells of a grid, whose text can be
 * copied. Without it, records open on pages of their own.
 */
{
  /** The record at the side of the grid is in the address, so that it can be shared and reloaded. */
  const panel = document.getElementById("record");
  const address = (record) => {
    const url = new URL(location);
    if (record) url.searchParams.set("record", record);
    else url.searchParams.delete("record");
    history.replaceState(history.state, "", url);
  };
  panel.addEventListener("toggle", (event) => {
    if (event.newState === "closed") address();
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx?.target === panel) address(panel.querySelector("[data-record]")?.dataset.record);
  });
  // It came open with the page.
  if (!panel.popover) {
    panel.popover = "auto";
    panel.showPopover();
  }

  /** In place of a thumbnail that does not come, the name of the file. */
  const nameInstead = ({ target }) => {
    const thumb = target.closest?.(".thumb");
    if (!thumb) return;
    thumb.className = "chip plain file picture";
    target.replaceWith(target.alt);
  };
  document.addEventListener("error", nameInstead, true);
  for (const picture of document.querySelectorAll(".thumb > img"))
    if (picture.complete && picture.naturalWidth === 0 && picture.currentSrc)
      nameInstead({ target: picture });

  const grid = document.querySelector(".grid");
  if (grid) begin(grid, document.getElementById("grid-status"));

  function begin(grid, status) {
    const rows = [...grid.tBodies[0].rows];
    const CELLS = ".grid tbody > tr > *";
    /** The cell where the cursor is, or was. */
    let current = rows[0].cells[0];
    const STEPS = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, Number.NEGATIVE_INFINITY],
      End: [0, Number.POSITIVE_INFINITY],
    };

    grid.parentElement.addEventListener("focusin", (event) => {
      current = event.target.closest(CELLS) ?? current;
    });
    grid.parentElement.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (event.key === "Enter" && event.target === current) return recordLink(current).click();
      const step = STEPS[event.key];
      if (!step || event.target.closest("thead")) return;
      event.preventDefault();
      // The first key shows where the cursor is.
      const [down, right] = event.target.closest(CELLS) ? step : [0, 0];
      const within = (at, length) => Math.max(0, Math.min(length - 1, at));
      const row = rows[within(rows.indexOf(current.parentElement) + down, rows.length)];
      current = row.cells[within(current.cellIndex + right, row.cells.length)];
      current.tabIndex = -1;
      current.focus();
    });

    document.addEventListener("copy", async (event) => {
      if (document.activeElement !== current || !getSelection().isCollapsed) return;
      event.preventDefault();
      event.clipboardData.setData("text/plain", textOf(current));
      status.textContent = "Copied";
      if (current.dataset.clipped === undefined) return;
      try {
        await navigator.clipboard.writeText(await wholeText(current));
      } catch {
        status.textContent = "Copied as far as shown: open the record for the whole text";
      }
    });
  }

  function recordLink(cell) {
    return cell.parentElement.querySelector("th a");
  }

  /** The text that a cell shows: of several elements with commas between them. */
  function textOf(cell) {
    const chips = cell.querySelectorAll(".chips > :not(.more)");
    if (chips.length > 0) return [...chips].map(ownText).join(", ");
    return cell.querySelector(".check")?.ariaLabel ?? ownText(cell.querySelector(":scope > a") ?? cell);
  }

  function ownText(element) {
    const copy = element.cloneNode(true);
    for (const picture of copy.querySelectorAll("img")) picture.replaceWith(picture.alt);
    for (const hidden of copy.querySelectorAll("[aria-hidden]")) hidden.remove();
    return copy.textContent;
  }

  /** The record has the whole text of a cell that the grid clips. */
  async function wholeText(cell) {
    const response = await fetch(recordLink(cell).href, { headers: { "hx-request": "true" } });
    if (!response.ok) throw new Error(response.statusText);
    const record = new DOMParser().parseFromString(await response.text(), "text/html");
    const { column } = cell.closest("table").tHead.rows[0].cells[cell.cellIndex].dataset;
    return textOf(record.querySelector(`[data-column="${CSS.escape(column)}"] > dd`));
  }
}
