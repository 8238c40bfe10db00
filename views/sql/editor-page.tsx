/** The SQL editor of a base: a form that works as it is, and that the page's script makes an editor with panes and tabs. */

import type { Base } from "../../core/control/bases";
import type { SampleQuery } from "../../core/exports";
import type { PastQuery, SavedQuery } from "../../core/sql-editor";
import { parametersOf } from "../../core/sql-parameters";
import { Button, ErrorNote, Field, Form, useMay } from "../components";
import { counted } from "../format";
import { QueryHistory } from "./history";

export interface EditorProps {
  base: Base;
  /** Whose tabs the browser keeps. */
  userId: string;
  sql: string;
  samples: SampleQuery[];
  saved: SavedQuery[];
  history: PastQuery[];
  /** The saved query that is shown. */
  current?: SavedQuery | undefined;
  /** Values of the query's parameters, by name. */
  values?: ReadonlyMap<string, string> | undefined;
  /** What went wrong with saving or downloading. */
  problem?: string | undefined;
  script: string;
  chartScript: string;
  limits: { seconds: number; rows: number; csvRows: number };
  children?: preact.ComponentChildren;
}

export function EditorPage(props: EditorProps) {
  const { base, script, children } = props;
  const path = `/bases/${base.id}/sql`;
  return (
    <div class="sql-page" id="sql-page">
      <Side {...props} path={path} />
      <Splitter name="side" label="Width of the tables" controls="sql-side" orientation="vertical" />
      <Editor {...props} path={path} />
      <Splitter name="editor" label="Height of the editor" controls="sql-form" orientation="horizontal" />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section id="sql-result" class="sql-result" aria-label="Results" tabIndex={0}>
        <div class="sql-panel">{children}</div>
      </section>
      <p id="sql-status" class="visually-hidden" role="status" />
      <script type="module" src={script} />
    </div>
  );
}

function Editor(props: EditorProps & { path: string }) {
  const { userId, sql, current, values, problem, chartScript, limits, path } = props;
  const maySave = useMay()("POST", `${path}/saved`);
  return (
    <Form
      id="sql-form"
      class="sql-form"
      action={path}
      data-names={`${path}/names`}
      data-chart={chartScript}
      data-owner={userId}
    >
      <ul id="sql-tabs" class="sql-tabs needs-script" aria-label="Open queries" />
      {problem ? <ErrorNote>{problem}</ErrorNote> : null}
      <label class="visually-hidden" for="sql-text">
        SQL
      </label>
      <textarea
        id="sql-text"
        name="sql"
        class="sql-text"
        rows={10}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder="select …"
        data-saved={current?.id}
        data-name={current?.name}
        required
      >
        {sql}
      </textarea>
      <div id="sql-parameters" class="sql-parameters">
        {parametersOf(sql).map((name) => (
          <div class="sql-parameter" key={name}>
            <label for={`:${name}`}>:{name}</label>
            <input
              id={`:${name}`}
              name={`:${name}`}
              value={values?.get(name)}
              placeholder="null"
              autocomplete="off"
              spellcheck={false}
            />
          </div>
        ))}
      </div>
      <div class="sql-tools">
        <Button
          kind="primary"
          isSmall
          name="as"
          value="rows"
          title="Ctrl+Enter or ⌘+Enter; runs the selection, if there is one"
        >
          Run
        </Button>
        <Button
          isSmall
          name="as"
          value="plan"
          title="Shows how Postgres would run the query, without running it"
        >
          Explain
        </Button>
        <Button isSmall name="as" value="analyze" title="Runs the query, and shows what took how long">
          Analyze
        </Button>
        <span id="sql-running" class="sql-running" hidden>
          <span class="spinner" aria-hidden="true" />
          <span id="sql-timer" />
          <Button type="button" id="sql-cancel" kind="danger" isSmall>
            Cancel
          </Button>
        </span>
        <p class="muted small sql-limits">
          Read-only, at most {limits.seconds} s<span class="needs-no-script"> and {limits.rows} rows</span>
        </p>
        <button
          type="button"
          id="sql-share"
          class="button quiet small needs-script"
          title="Copies an address that opens this query, for members of this account"
        >
          Copy link
        </button>
        <Button
          kind="quiet"
          isSmall
          formAction={`${path}/csv`}
          title={`Runs the query or the selection, up to ${counted(limits.csvRows, "row")}`}
        >
          Download CSV
        </Button>
        {maySave ? (
          <details class="tool sql-save">
            <summary class="button small">Save query</summary>
            <div class="tool-panel">
              <Field label="Name" name="name" id="sql-name" value={current?.name} maxLength={80} />
              <p class="hint">Saved queries are shared by the members of this account.</p>
              <Button formAction={`${path}/saved`}>Save</Button>
            </div>
          </details>
        ) : null}
      </div>
    </Form>
  );
}

/** What can be opened: by scripts one list at a time, otherwise all. */
function Side({ saved, samples, history, current, path }: EditorProps & { path: string }) {
  return (
    <aside id="sql-side" class="sql-side" aria-label="Tables and queries">
      <fieldset class="sql-segments needs-script">
        <legend class="visually-hidden">Shown</legend>
        {["Tables", "Queries", "History"].map((name, at) => (
          <button key={name} type="button" aria-pressed={at === 0 ? "true" : "false"} data-shows-list={name}>
            {name}
          </button>
        ))}
      </fieldset>
      <section class="side-list needs-script" data-list="Tables" aria-label="Tables">
        <label class="visually-hidden" for="sql-find">
          Find tables and columns
        </label>
        <input id="sql-find" type="search" placeholder="Find tables and columns" autocomplete="off" />
        <div id="sql-tree" class="sql-tree" />
      </section>
      <section class="side-list" data-list="Queries" aria-label="Queries">
        <h2>Saved</h2>
        {saved.length === 0 ? (
          <p class="muted small">Queries that you save appear here, for everyone in this account.</p>
        ) : (
          <ul class="query-list">
            {saved.map(({ id, name }) => (
              <li key={id}>
                <a
                  href={`${path}?saved=${id}`}
                  aria-current={id === current?.id ? "true" : undefined}
                  data-query={id}
                >
                  <bdi>{name}</bdi>
                </a>
                <Form action={`${path}/saved/${id}/delete`}>
                  <button type="submit" class="query-delete" title="Delete">
                    <span aria-hidden="true">×</span>
                    <span class="visually-hidden">Delete {name}</span>
                  </button>
                </Form>
              </li>
            ))}
          </ul>
        )}
        {samples.length === 0 ? null : (
          <>
            <h2>Samples</h2>
            <ul class="query-list">
              {samples.map(({ title }, at) => (
                <li key={title}>
                  <a href={`${path}?sample=${at + 1}`} data-query="">
                    <bdi>{title}</bdi>
                  </a>
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
      <section class="side-list" data-list="History" aria-label="History">
        <h2 class="needs-no-script">History</h2>
        <div id="sql-history">
          <QueryHistory history={history} path={path} />
        </div>
      </section>
    </aside>
  );
}

/** Between two panes: a script makes it a separator that is dragged, or moved by arrow keys. */
function Splitter(props: {
  name: string;
  label: string;
  controls: string;
  orientation: "vertical" | "horizontal";
}) {
  const { name, label, controls, orientation } = props;
  return (
    <div class={`splitter ${orientation}`} data-splitter={name} data-label={label} data-controls={controls} />
  );
}
