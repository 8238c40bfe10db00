/*
 * The text of the SQL editor: CodeMirror in a shadow root, where its styles are constructed sheets: no inline style for
 * the policy to forbid, and the page's own styles do not reach in.
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
import { completeSql } from "../sql-completion";

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": {
    fontFamily: "var(--mono)",
    lineHeight: "1.55",
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

/** What `completeSql` offers for the names that are known now, in its order. */
const completeWith =
  (names) =>
  ({ state, pos, explicit }) => {
    const found = completeSql(state.doc.toString(), pos, names(), explicit);
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
  };

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

/**
 * Replaces a text area.
 *
 * @param options.names returns the names of tables and columns
 * @param options.run is called by the keyboard
 * @param options.changed is called with the new text
 */
export function codeEditor(text, { names, run, changed }) {
  const host = document.createElement("div");
  host.className = "sql-editor";
  const root = host.attachShadow({ mode: "open" });
  text.before(host);
  const runByKey = () => {
    run();
    return true;
  };
  const stateOf = (doc) =>
    EditorState.create({
      doc,
      extensions: [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: runByKey }])),
        lineNumbers(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false, override: [completeWith(names)] }),
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
          if (docChanged) changed(view.state.doc.toString());
        }),
      ],
    });
  const view = new EditorView({ root, parent: root, state: stateOf(text.value) });
  text.hidden = true;
  // A field that is not shown cannot ask to be filled.
  text.required = false;
  return {
    stateOf,
    get state() {
      return view.state;
    },
    /** Shows another text, with its own cursor and its own changes to undo. */
    set state(state) {
      view.setState(state);
    },
    focus: () => view.focus(),
    /** The selected text and where it begins, or all of it. */
    selected() {
      const { from, to, empty } = view.state.selection.main;
      return empty
        ? { sql: view.state.doc.toString(), offset: 0 }
        : { sql: view.state.sliceDoc(from, to), offset: from };
    },
    /** Writes a name at the cursor, apart from the word before it. */
    insert(name) {
      const { from, to } = view.state.selection.main;
      const isAfterWord = /[\w"]/.test(view.state.sliceDoc(Math.max(0, from - 1), from));
      const insert = isAfterWord ? ` ${name}` : name;
      view.dispatch({
        changes: { from, to, insert },
        selection: { anchor: from + insert.length },
        scrollIntoView: true,
        userEvent: "input",
      });
      view.focus();
    },
    /** @param position undefined: removes the mark */
    markError(position) {
      if (position === undefined) return view.dispatch({ effects: setError.of(null) });
      const at = Math.min(position, view.state.doc.length);
      view.dispatch({ effects: [setError.of(at), EditorView.scrollIntoView(at)] });
    },
  };
}
