/** The SQL editor of a base: a form that works as it is, and that the page's script makes an editor. */
import type { Base } from "../../core/control/bases";
import type { SampleQuery } from "../../core/exports";
import type { SavedQuery } from "../../core/sql-editor";
import { Button, ErrorNote, Field, Form } from "../components";

export interface EditorProps {
  base: Base;
  sql: string;
  samples: SampleQuery[];
  saved: SavedQuery[];
  /** The saved query that is shown. */
  current?: SavedQuery | undefined;
  /** What went wrong with saving or downloading. */
  problem?: string | undefined;
  script: string;
  limits: { seconds: number; rows: number; csvRows: number };
  children?: preact.ComponentChildren;
}

export function EditorPage(props: EditorProps) {
  const { base, sql, current, problem, script, limits, children } = props;
  const path = `/bases/${base.id}/sql`;
  return (
    <div class="sql-page">
      <div class="sql-main">
        {problem ? <ErrorNote>{problem}</ErrorNote> : null}
        <Form id="sql-form" class="sql-form" action={path} data-names={`${path}/names`}>
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
            required
          >
            {sql}
          </textarea>
          <div class="sql-tools">
            <Button
              kind="primary"
              name="as"
              value="rows"
              title="Ctrl+Enter or ⌘+Enter; runs the selection, if there is one"
            >
              Run
            </Button>
            <Button name="as" value="plan" title="Shows how Postgres would run the query, without running it">
              Explain
            </Button>
            <Button type="button" id="sql-cancel" kind="danger" hidden>
              Cancel
            </Button>
            <Button
              formAction={`${path}/csv`}
              title={`Runs the query, up to ${inThousands(limits.csvRows)} rows`}
            >
              Download CSV
            </Button>
            <p class="muted small sql-limits">
              Read-only. Stops after {limits.seconds} s, shows {limits.rows} rows.
            </p>
          </div>
          <details class="sql-save" open={current !== undefined}>
            <summary>{current ? "Save changes" : "Save this query"}</summary>
            <div class="sql-save-row">
              <Field
                label="Name"
                name="name"
                id="sql-name"
                value={current?.name}
                maxLength={80}
                autocomplete="off"
              />
              <Button formAction={`${path}/saved`}>Save</Button>
            </div>
          </details>
        </Form>
        <div id="sql-result" class="sql-result" aria-live="polite">
          {children}
        </div>
      </div>
      <Queries {...props} path={path} />
      <script type="module" src={script} />
    </div>
  );
}

function Queries({ saved, samples, current, path }: EditorProps & { path: string }) {
  return (
    <aside class="sql-side" aria-label="Queries">
      <section aria-labelledby="saved-heading">
        <h2 id="saved-heading">Saved</h2>
        {saved.length === 0 ? (
          <p class="muted small">Queries that you save appear here, for everyone in this account.</p>
        ) : (
          <ul class="query-list">
            {saved.map((query) => (
              <li key={query.id}>
                <a
                  href={`${path}?saved=${query.id}`}
                  aria-current={query.id === current?.id ? "true" : undefined}
                  data-sql={query.sql}
                  data-name={query.name}
                >
                  <bdi>{query.name}</bdi>
                </a>
                <Form action={`${path}/saved/${query.id}/delete`}>
                  <button type="submit" class="query-delete" title="Delete">
                    <span aria-hidden="true">×</span>
                    <span class="visually-hidden">Delete {query.name}</span>
                  </button>
                </Form>
              </li>
            ))}
          </ul>
        )}
      </section>
      {samples.length === 0 ? null : (
        <section aria-labelledby="samples-heading">
          <h2 id="samples-heading">Samples</h2>
          <ul class="query-list">
            {samples.map((sample, at) => (
              <li key={sample.title}>
                <a href={`${path}?sample=${at + 1}`} data-sql={sample.sql} data-name="">
                  <bdi>{sample.title}</bdi>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </aside>
  );
}

function inThousands(count: number): string {
  return count.toLocaleString("en-US");
}
