/*
 * The SQL editor's script: replaces the text area by CodeMirror, completes the names of tables and columns, runs the
 * query without leaving the page, and cancels it. The form works without it.
 *
 * The editor is in a shadow root, where CodeMirror's styles are constructed sheets: no inline style for the policy to
 * forbid, and the page's own styles do not reach in.
 */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  pickedCompletion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { PostgreSQL } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { completeSql } from "./sql-completion";

const form = document.getElementById("sql-form");
const text = document.getElementById("sql-text");
const result = document.getElementById("sql-result");
const cancel = document.getElementById("sql-cancel");

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    fontFamily: "var(--mono)",
    lineHeight: "1.55",
    minHeight: "10rem",
    maxHeight: "24rem",
    overflow: "auto",
  },
  ".cm-content": { padding: "0.625rem 0", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--sunken) 60%, transparent)" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--client-soft)",
  },
  ".cm-placeholder": { color: "var(--muted)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)" },
  ".cm-error": { textDecoration: "underline wavy var(--red)", textUnderlineOffset: "0.2em" },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line)",
    borderRadius: "0.375rem",
    boxShadow: "var(--shadow-high)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "0.8125rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "0.1875rem 0.5rem" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
  },
});

const colors = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword], color: "var(--accent)", fontWeight: "600" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--green)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--yellow)" },
    { tag: [tags.comment], color: "var(--muted)", fontStyle: "italic" },
    { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--client)" },
  ]),
);

/** The position of the last run's error, until the text changes there. */
const setError = StateEffect.define();
const errorMark = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setError)) continue;
      const { value } = effect;
      if (value === null) next = Decoration.none;
      else {
        const rest = transaction.state.sliceDoc(value, value + 200);
        const length = /^(?:\w+|"[^"]*"|'[^']*'|.)/s.exec(rest)?.[0].length ?? 0;
        const mark = Decoration.mark({ class: "cm-error" });
        next = length > 0 ? Decoration.set([mark.range(value, value + length)]) : Decoration.none;
      }
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/**
 * Replaces a selection by what is typed. Left to do it, Chromium copies the style of the replaced text into the page,
 * and reports that the policy forbids that.
 */
const replaceTyped = EditorView.domEventHandlers({
  beforeinput(event, editor) {
    const { from, to, empty } = editor.state.selection.main;
    if (event.inputType !== "insertText" || !event.data || event.isComposing || empty) return false;
    event.preventDefault();
    const insert = () =>
      editor.state.update(editor.state.replaceSelection(event.data), {
        userEvent: "input.type",
        scrollIntoView: true,
      });
    const handlers = editor.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(editor, from, to, event.data, insert))) editor.dispatch(insert());
    return true;
  },
});

/** The names of tables and columns; until they have arrived, keywords are completed. */
let names = { schema: "", relations: [] };

/** What `completeSql` offers, in its order. */
function complete({ state, pos, explicit }) {
  const found = completeSql(state.doc.toString(), pos, names, explicit);
  if (!found) return null;
  const options = found.options.map((option) => ({
    ...option,
    apply: option.kind === "function" ? insertCall : option.apply,
  }));
  const getMatch = ({ label }) => {
    const start = label.toLowerCase().indexOf(found.typed.toLowerCase());
    return start === -1 ? [] : [start, start + found.typed.length];
  };
  return { ...found, options, filter: false, getMatch };
}

/** Inserts a function's name and parentheses, with the cursor between them. */
function insertCall(editor, completion, from, to) {
  const hasParenthesis = editor.state.sliceDoc(to, to + 1) === "(";
  const call = hasParenthesis ? completion.label : `${completion.label}()`;
  editor.dispatch({
    changes: { from, to, insert: call },
    selection: { anchor: from + completion.label.length + 1 },
    annotations: pickedCompletion.of(completion),
    userEvent: "input.complete",
  });
}

const draftKey = `draft ${location.pathname}`;
const host = document.createElement("div");
host.className = "sql-editor";
const root = host.attachShadow({ mode: "open" });
text.before(host);

const view = new EditorView({
  root,
  parent: root,
  state: EditorState.create({
    doc: text.value,
    extensions: [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: runByKey }])),
      lineNumbers(),
      highlightSpecialChars(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ icons: false, override: [complete] }),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      EditorView.lineWrapping,
      placeholder("select …"),
      // Tab leaves the editor after Escape, as CodeMirror's help says.
      keymap.of([
        ...closeBracketsKeymap,
        ...defaultKeymap,
        ...historyKeymap,
        ...completionKeymap,
        indentWithTab,
      ]),
      PostgreSQL.language,
      EditorView.contentAttributes.of({ "aria-label": "SQL", spellcheck: "false" }),
      replaceTyped,
      errorMark,
      theme,
      colors,
      EditorView.updateListener.of(({ docChanged }) => {
        if (!docChanged) return;
        text.value = view.state.doc.toString();
        sessionStorage.setItem(draftKey, text.value);
      }),
    ],
  }),
});
text.hidden = true;
// A field that is not shown cannot ask to be filled.
text.required = false;
form.classList.add("scripted");
// An address that names a query shows that one, and a page that was left the text as it was left.
const draft = sessionStorage.getItem(draftKey);
if (location.search === "" && draft && result.childElementCount === 0) show(draft);

loadNames();

async function loadNames() {
  try {
    const response = await fetch(form.dataset.names, { headers: { accept: "application/json" } });
    if (!response.ok) return;
    names = await response.json();
  } catch {
    // Keywords are completed all the same.
  }
}

/** Replaces the text, so that it can be undone. */
function show(sqlText) {
  view.dispatch({
    changes: { from: 0, to: view.state.doc.length, insert: sqlText },
    selection: { anchor: 0 },
    effects: setError.of(null),
  });
}

let running;

function runByKey() {
  start("rows");
  return true;
}

form.addEventListener("submit", (event) => {
  const as = event.submitter?.name === "as" ? event.submitter.value : undefined;
  text.value = view.state.doc.toString();
  // The other buttons lead to a page or a file.
  if (!as) return;
  event.preventDefault();
  start(as);
});

cancel.addEventListener("click", () => running?.abort());

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-sql]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(link.dataset.sql);
  document.getElementById("sql-name").value = link.dataset.name;
  for (const other of document.querySelectorAll("a[data-sql]")) other.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  view.focus();
});

async function start(as) {
  if (running) return;
  const { from, to, empty } = view.state.selection.main;
  const offset = empty ? 0 : from;
  const body = new URLSearchParams({
    sql: empty ? view.state.doc.toString() : view.state.sliceDoc(from, to),
    as,
  });
  running = new AbortController();
  setRunning(true);
  view.dispatch({ effects: setError.of(null) });
  try {
    const response = await fetch(form.action, {
      method: "POST",
      body,
      signal: running.signal,
      headers: { "hx-request": "true", accept: "text/html" },
    });
    // A session that has ended leads to the sign-in page.
    if (response.redirected || response.headers.has("hx-redirect")) return location.reload();
    result.innerHTML = await response.text();
    const failed = result.querySelector("[data-position]");
    if (failed) markError(Number(failed.dataset.position) + offset);
  } catch (error) {
    const note = document.createElement("p");
    note.className = "muted";
    note.textContent =
      error.name === "AbortError" ? "Cancelled." : "The console could not be reached. Run the query again.";
    result.replaceChildren(note);
  } finally {
    running = undefined;
    setRunning(false);
  }
}

function markError(position) {
  const at = Math.min(position, view.state.doc.length);
  view.dispatch({ effects: [setError.of(at), EditorView.scrollIntoView(at)] });
}

function setRunning(isRunning) {
  form.classList.toggle("running", isRunning);
  cancel.hidden = !isRunning;
  result.setAttribute("aria-busy", String(isRunning));
  for (const button of form.querySelectorAll('button[name="as"]')) button.disabled = isRunning;
}
