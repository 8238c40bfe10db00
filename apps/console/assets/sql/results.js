/*
 * What can be done with a result: paging, copying, drawing. The page has the first rows. Those after them come by one
 * more run, which returns all rows that may be shown: pages of a later run would not fit together.
 */
import { csvOf, jsonOf, markdownOf } from "./copy-forms";

const PAGE_ROWS = 500;
/** How long "Copied" is shown, ms. */
const SHOWN_MS = 1600;
const FORMS = { CSV: csvOf, JSON: jsonOf, Markdown: markdownOf };

/** By section: `{ rows, isCut, from }` after the rows have been read. */
const loaded = new WeakMap();

/**
 * @param options.readRows requests all rows of a result, and calls a function with the answer: lines, each an array of
 *   rows, and at the end whether there are more
 * @param options.say tells screen readers
 * @param options.chartScript is loaded when a chart is drawn
 */
export function showResults(container, { readRows, say, chartScript }) {
  container.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    const result = button?.closest(".result");
    if (!result) return;
    const { page, view, copyAs } = button.dataset;
    if (page) await turn(result, Number(page));
    if (copyAs) await copy(result, button, copyAs);
    if (view) await show(result, view);
  });

  async function turn(result, by) {
    const known = loaded.get(result) ?? (await load(result));
    if (!known) return;
    known.from = Math.min(Math.max(0, known.from + by * PAGE_ROWS), lastPage(known));
    drawRows(result, known);
    say(`Rows ${rangeOf(known)}`);
  }

  /** Reads all rows, or as many as come. @returns undefined if they are no more than before; the page says why */
  async function load(result) {
    const note = result.querySelector(".result-note");
    const all = { rows: [], isCut: false, from: 0 };
    const read = async (answer) => {
      if (!answer.ok) throw new Error(await errorIn(answer));
      for await (const line of linesOf(answer.body)) {
        const part = JSON.parse(line);
        if (part.error !== undefined) throw new Error(part.error);
        if (Array.isArray(part)) for (const row of part) all.rows.push(row);
        else all.isCut = part.isCut;
        note.textContent = ` · reading ${count(all.rows.length)} rows`;
      }
      return all;
    };
    let why = "";
    try {
      if (!(await readRows(result, read))) return;
    } catch (error) {
      all.isCut = true;
      why = error.name === "AbortError" ? "Cancelled." : error.message;
    }
    const isMore = why === "" || all.rows.length > PAGE_ROWS;
    note.textContent = `${all.isCut ? ", there are more" : ""}${why && ` · The other rows were not read. ${why}`}`;
    if (why) say(note.textContent);
    if (!isMore) return;
    // Those that came before an error are of one run, too.
    loaded.set(result, all);
    result.querySelector("strong").textContent = `${count(all.rows.length)} rows`;
    return all;
  }

  async function copy(result, button, form) {
    const rows = rowsOf(result);
    const text = FORMS[form](columnsOf(result), rows);
    // Of a result that goes on, those that have been read.
    let [shown, told] = [`Copied ${count(rows.length)}`, `${count(rows.length)} rows copied as ${form}`];
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      [shown, told] = ["No access", "The clipboard cannot be used"];
    }
    button.textContent = shown;
    say(told);
    setTimeout(() => {
      button.innerHTML = `<span class="visually-hidden">Copy as </span>${form}`;
    }, SHOWN_MS);
  }

  async function show(result, view) {
    for (const button of result.querySelectorAll("[data-view]")) {
      button.ariaPressed = String(button.dataset.view === view);
    }
    const chart = result.querySelector(".result-chart");
    chart.hidden = view !== "chart";
    result.querySelector(".grid-scroll").hidden = view === "chart";
    if (view !== "chart") return;
    const { drawChart } = await import(chartScript);
    drawChart(chart, columnsOf(result), rowsOf(result));
  }
}

/** The text of an error, which the page's own routes write as it is, and others with its code. */
async function errorIn(answer) {
  const { error } = await answer.json().catch(() => ({}));
  return error?.message ?? error ?? "The console could not be reached.";
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    yield* lines;
  }
}

function columnsOf(result) {
  return [...result.querySelectorAll("th[data-name]")].map((head) => ({
    name: head.dataset.name,
    type: head.dataset.type,
    isNumber: head.classList.contains("number"),
  }));
}

/** The rows that have been read. */
function rowsOf(result) {
  const cellValue = (cell) => (cell.classList.contains("null") ? null : cell.textContent);
  return (
    loaded.get(result)?.rows ??
    [...result.querySelectorAll("tbody tr")].map((row) => [...row.cells].slice(1).map(cellValue))
  );
}

function drawRows(result, known) {
  const columns = columnsOf(result);
  const cell = (text, ...names) => {
    const made = document.createElement("td");
    made.className = names.filter(Boolean).join(" ");
    made.textContent = text;
    return made;
  };
  const rows = known.rows.slice(known.from, known.from + PAGE_ROWS).map((row, at) => {
    const line = document.createElement("tr");
    line.append(
      cell(known.from + at + 1, "row-number"),
      ...row.map((value, column) =>
        cell(value ?? "null", value === null && "null", columns[column].isNumber && "number"),
      ),
    );
    return line;
  });
  result.querySelector("tbody").replaceChildren(...rows);
  result.querySelector(".grid-scroll").scrollTop = 0;
  result.querySelector("[data-range]").textContent = rangeOf(known);
  const [previous, next] = result.querySelectorAll("[data-page]");
  previous.disabled = known.from === 0;
  next.disabled = known.from === lastPage(known);
}

function lastPage({ rows }) {
  return Math.floor(Math.max(0, rows.length - 1) / PAGE_ROWS) * PAGE_ROWS;
}

function rangeOf({ rows, from }) {
  return `${count(from + 1)}–${count(Math.min(rows.length, from + PAGE_ROWS))} of ${count(rows.length)}`;
}

function count(number) {
  return number.toLocaleString("en-US");
}
