/*
 * The SQL editor's script: puts CodeMirror in the place of the text area, opens queries in tabs, runs them without leaving
 * the page, and cancels them. The form works without it.
 *
 * A tab's text and values are kept for the session. An address may bring a query in its fragment, which browsers do not
 * send: it is shown, and not run.
 */
import { parametersOf } from "../../../core/sql-parameters";
import { codeEditor } from "./sql/code-editor";
import { showPanes } from "./sql/panes";
import { showResults } from "./sql/results";
import { showTree } from "./sql/tree";

const SHARED = "#sql=";
/** Longer addresses are cut on their way. */
const MOST_SHARED = 8000;
/** How long "Copied" is shown, ms. */
const SHOWN_MS = 1600;
const TITLE_LENGTH = 40;

const form = document.getElementById("sql-form");
const text = document.getElementById("sql-text");
const result = document.getElementById("sql-result");
const bar = document.getElementById("sql-tabs");
const fields = document.getElementById("sql-parameters");
const running = document.getElementById("sql-running");
const timer = document.getElementById("sql-timer");
const status = document.getElementById("sql-status");
/** Of the page: after a form that failed, the address is another one. */
const { pathname } = new URL(form.action);
const keptKey = `sql ${form.dataset.owner} ${pathname}`;

/** The names of tables and columns; until they have arrived, keywords are completed. */
let names = { schema: "", relations: [] };
const tabs = [];
let current;

const editor = codeEditor(text, { names: () => names, run: () => start("rows"), changed });
showPanes();
loadNames();
showResults(result, { readRows, say, chartScript: form.dataset.chart });
showFirst();

async function loadNames() {
  const tree = document.getElementById("sql-tree");
  try {
    const answer = await fetch(form.dataset.names, { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error(answer.statusText);
    names = await answer.json();
    showTree(tree, document.getElementById("sql-find"), names, editor.insert);
  } catch {
    // Keywords are completed all the same.
    tree.textContent = "The tables cannot be read now.";
  }
}

function say(message) {
  status.textContent = message;
}

/** The query that the address names, and the tabs of the session. */
function showFirst() {
  // Showing a tab changes the address.
  const { hash } = location;
  const kept = JSON.parse(sessionStorage.getItem(keptKey) ?? "null");
  for (const one of kept?.tabs ?? []) tabs.push(tabOf(one));
  const panel = result.firstElementChild;
  const values = [...fields.querySelectorAll("input")].map((input) => [input.name.slice(1), input.value]);
  if (panel.childElementCount > 0) panel.ran = { sql: text.value, values: new Map(values) };
  const { saved: id, name } = text.dataset;
  const isAsked = location.search !== "" || panel.childElementCount > 0 || tabs.length === 0;
  if (isAsked) open({ sql: text.value, id, name, values }, panel);
  else {
    panel.remove();
    select(tabs[kept.current] ?? tabs[0]);
  }
  openShared(hash);
  addEventListener("hashchange", () => openShared(location.hash));
}

function openShared(hash) {
  if (!hash.startsWith(SHARED)) return;
  try {
    open({ sql: decodeURIComponent(hash.slice(SHARED.length)) });
  } catch {
    say("The address does not contain a query");
  }
}

/** @param query.values of its parameters, by name */
function tabOf({ sql, id, name, values = [] }, panel = document.createElement("div")) {
  panel.className = "sql-panel";
  return { sql, id, name, values: new Map(values), panel };
}

/** Shows a query in its tab; else instead of one that has only been looked at, else in a new one. */
function open(query, panel) {
  const known =
    tabs.find(({ id }) => query.id && id === query.id) ??
    tabs.find(({ id, sql }) => !id && sql.trim() === query.sql.trim());
  const tab = known ?? tabOf(query, panel);
  if (known) {
    Object.assign(known, { id: query.id, name: query.name });
    if (panel) {
      known.panel.remove();
      Object.assign(known, { panel, values: new Map(query.values) });
    }
  } else {
    const place = current?.shown === current?.sql ? tabs.indexOf(current) : -1;
    if (place >= 0) {
      current.panel.remove();
      tabs[place] = tab;
    } else tabs.push(tab);
    if (tab.panel.childElementCount === 0) tab.shown = tab.sql;
  }
  if (query.id) tab.saved = query.sql;
  select(tab);
}

function select(tab) {
  if (current) current.state = editor.state;
  current = tab;
  result.append(tab.panel);
  for (const { panel } of tabs) panel.hidden = panel !== tab.panel;
  editor.state = tab.state ?? editor.stateOf(tab.sql);
  text.value = tab.sql;
  const field = document.getElementById("sql-name");
  if (field) field.value = tab.name ?? "";
  for (const link of document.querySelectorAll("a[data-query]")) {
    if (tab.id && link.dataset.query === tab.id) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  window.history.replaceState(null, "", tab.id ? `${pathname}?saved=${tab.id}` : pathname);
  drawTabs();
  drawFields();
  drawRunning();
  keep();
}

function close(tab) {
  tab.run?.controller.abort();
  tab.panel.remove();
  const at = tabs.indexOf(tab);
  tabs.splice(at, 1);
  if (tabs.length === 0) tabs.push(tabOf({ sql: "" }));
  if (tab === current) {
    current = undefined;
    select(tabs[Math.min(at, tabs.length - 1)]);
  } else {
    drawTabs();
    drawRunning();
    keep();
  }
}

function changed(sql) {
  text.value = sql;
  current.sql = sql;
  const shows = bar.querySelector('[aria-current="true"]');
  shows.textContent = titleOf(current);
  shows.nextElementSibling.ariaLabel = `Close ${titleOf(current)}`;
  drawFields();
  keep();
}

function keep() {
  const kept = tabs.map(({ sql, id, name, values }) => ({ sql, id, name, values: [...values] }));
  try {
    sessionStorage.setItem(keptKey, JSON.stringify({ tabs: kept, current: tabs.indexOf(current) }));
  } catch {
    // Full: the tabs remain until the page is left.
  }
}

function titleOf({ name, sql }) {
  return name || sql.trim().replaceAll(/\s+/g, " ").slice(0, TITLE_LENGTH) || "New query";
}

function drawTabs() {
  const buttonOf = (label, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", act);
    return button;
  };
  const items = tabs.map((tab) => {
    const item = document.createElement("li");
    const shows = buttonOf(titleOf(tab), () => {
      select(tab);
      editor.focus();
    });
    shows.ariaCurrent = String(tab === current);
    const closes = buttonOf("×", () => {
      close(tab);
      editor.focus();
    });
    closes.ariaLabel = `Close ${titleOf(tab)}`;
    item.append(shows, closes);
    return item;
  });
  const more = document.createElement("li");
  const adds = buttonOf("+", () => {
    const tab = tabOf({ sql: "" });
    tabs.push(tab);
    select(tab);
    editor.focus();
  });
  adds.ariaLabel = adds.title = "New query";
  more.append(adds);
  bar.replaceChildren(...items, more);
  bar.querySelector('[aria-current="true"]').scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** A field for each parameter of the query. */
function drawFields() {
  const wanted = parametersOf(current.sql);
  const inputs = [...fields.querySelectorAll("input")];
  if (inputs.length === wanted.length && wanted.every((name, at) => inputs[at].name === `:${name}`)) {
    for (const input of inputs) input.value = current.values.get(input.name.slice(1)) ?? "";
    return;
  }
  fields.replaceChildren(
    ...wanted.map((name) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      label.textContent = label.htmlFor = input.id = input.name = `:${name}`;
      Object.assign(input, { placeholder: "null", autocomplete: "off", spellcheck: false });
      input.value = current.values.get(name) ?? "";
      const field = document.createElement("div");
      field.className = "sql-parameter";
      field.append(label, input);
      return field;
    }),
  );
}

fields.addEventListener("input", ({ target }) => {
  current.values.set(target.name.slice(1), target.value);
  keep();
});
fields.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  start("rows");
});

// In a form, Enter presses the first button.
document.getElementById("sql-name")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  form.requestSubmit(form.querySelector('[formaction$="/saved"]'));
});

form.addEventListener("submit", (event) => {
  const { submitter } = event;
  if (submitter?.name !== "as") {
    // The other buttons lead to a page or a file. A file is of the selection, as a run is; what is saved is all of it.
    text.value = submitter?.formAction.endsWith("/csv") ? editor.selected().sql : current.sql;
    return;
  }
  event.preventDefault();
  start(submitter.value);
});

document.getElementById("sql-cancel").addEventListener("click", () => current.run?.controller.abort());

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("a[data-query]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const answer = await fetch(link.href, { headers: { accept: "application/json" } }).catch(() => undefined);
  const query = answer?.ok ? await answer.json() : { sql: null };
  // It has been deleted, or the session has ended: the page says which.
  if (query.sql === null) return location.assign(link.href);
  open(query);
  editor.focus();
});

document.getElementById("sql-share").addEventListener("click", async ({ currentTarget: button }) => {
  const { id, sql, saved } = current;
  const address = new URL(form.action);
  if (id && saved === sql) address.search = `saved=${id}`;
  else address.hash = SHARED + encodeURIComponent(sql);
  let said = "Copied";
  if (address.href.length > MOST_SHARED) said = "Too long: save it first";
  else {
    try {
      await navigator.clipboard.writeText(address.href);
    } catch {
      window.history.replaceState(null, "", address.href);
      said = "See the address bar";
    }
  }
  const before = "Copy link";
  button.textContent = said;
  say(said);
  setTimeout(() => {
    button.textContent = before;
  }, SHOWN_MS);
});

function bodyOf(sql, values, more) {
  const body = new URLSearchParams({ sql, ...more });
  for (const name of parametersOf(sql)) body.append(`:${name}`, values.get(name) ?? "");
  return body;
}

async function start(as) {
  const tab = current;
  const { sql, offset } = editor.selected();
  const values = new Map(tab.values);
  editor.markError();
  tab.shown = undefined;
  const isDone = await whileRunning(tab, async (signal) => {
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body: bodyOf(sql, values, { as }),
        signal,
        headers: { "hx-request": "true", accept: "text/html" },
      });
      // A session that has ended leads to the sign-in page.
      if (answer.redirected || answer.headers.has("hx-redirect")) return location.reload();
      tab.panel.innerHTML = await answer.text();
      tab.panel.ran = { sql, values };
      const failed = tab.panel.querySelector("[data-position]");
      if (failed && tab === current) editor.markError(Number(failed.dataset.position) + offset);
      say(tab.panel.querySelector("strong, .note-title")?.textContent ?? "Done");
      return true;
    } catch (error) {
      const note = document.createElement("p");
      note.className = "muted";
      note.textContent =
        error.name === "AbortError" ? "Cancelled." : "The console could not be reached. Run the query again.";
      tab.panel.replaceChildren(note);
      say(note.textContent);
    }
  });
  if (isDone && as === "rows") showHistory();
}

/** Shows that a query of the tab runs, and lets it be cancelled. Does nothing while another one runs. */
async function whileRunning(tab, work) {
  if (tab.run) return;
  tab.run = { controller: new AbortController(), began: performance.now() };
  drawRunning();
  try {
    return await work(tab.run.controller.signal);
  } finally {
    tab.run = undefined;
    drawRunning();
  }
}

/** Reads all rows of a result, by another run of the statement that it is of. */
function readRows(section, read) {
  const tab = tabs.find(({ panel }) => panel.contains(section));
  const { sql, values } = tab.panel.ran ?? tab;
  const body = bodyOf(sql, values, { statement: section.dataset.statement });
  return whileRunning(tab, async (signal) =>
    read(await fetch(`${form.action}/rows`, { method: "POST", body, signal })),
  );
}

async function showHistory() {
  const answer = await fetch(`${form.action}/history`, { headers: { "hx-request": "true" } }).catch(() => {});
  if (answer?.ok) document.getElementById("sql-history").innerHTML = await answer.text();
}

let ticking;

/** How long the current tab's query has been running, and the button that ends it. */
function drawRunning() {
  const { run, panel } = current;
  running.hidden = !run;
  panel.ariaBusy = String(Boolean(run));
  for (const button of form.querySelectorAll('button[name="as"]')) button.disabled = Boolean(run);
  tabs.forEach((tab, at) => {
    bar.children[at].classList.toggle("running", Boolean(tab.run));
  });
  clearInterval(ticking);
  if (!run) return;
  const tick = () => {
    timer.textContent = `Running ${((performance.now() - run.began) / 1000).toFixed(1)} s`;
  };
  tick();
  ticking = setInterval(tick, 100);
}
