/** What a run of the SQL editor returned: a grid or a plan per statement, and the error of the one that failed. */
import { cutText } from "../../core/cut-text";
import {
  NUMERIC_TYPES,
  type QueryFailure,
  type QueryOutcome,
  queryPlanOf,
  type StatementResult,
} from "../../core/sql-editor";
import { counted } from "../format";
import { QueryPlan } from "./plan";

/** Characters around an error in a long line. */
const EXCERPT = 80;

interface Props {
  outcome: QueryOutcome;
  sql: string;
  /** What to do about the failure. */
  advice?: string | undefined;
}

export function QueryResults({ outcome, sql, advice }: Props) {
  const { results, failure, ms } = outcome;
  const hasSeveral = results.length + (failure ? 1 : 0) > 1;
  const time = ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
  return (
    <>
      {results.map((result, at) => (
        <Result
          key={at}
          result={result}
          at={at}
          hasSeveral={hasSeveral}
          time={hasSeveral ? undefined : time}
        />
      ))}
      {failure ? (
        <Failure {...{ failure, sql, advice }} number={hasSeveral ? results.length + 1 : undefined} />
      ) : hasSeveral ? (
        <p class="muted small">{time}</p>
      ) : null}
    </>
  );
}

function Result(props: {
  result: StatementResult;
  at: number;
  hasSeveral: boolean;
  time: string | undefined;
}) {
  const { result, at, hasSeveral, time } = props;
  const { columns, rows, isCut } = result;
  const name = hasSeveral ? `Result ${at + 1}` : "Result";
  if (columns.length === 0) return <p class="muted">{name}: done, no rows</p>;
  const plan = queryPlanOf(result);
  if (plan) return <QueryPlan plan={plan} name={hasSeveral ? `Plan ${at + 1}` : "Plan"} />;
  return (
    <section class="result" aria-label={name} data-statement={at} data-cut={isCut ? "" : undefined}>
      <div class="result-head">
        <p>
          <strong>
            {hasSeveral ? `${name}: ` : ""}
            {counted(rows.length, "row")}
          </strong>
          <span class="muted result-note">
            {isCut ? " shown, there are more" : null}
            {time ? ` · ${time}` : null}
          </span>
        </p>
        <ResultTools hasMore={isCut} />
      </div>
      <div class="result-chart" hidden />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section class="grid-scroll" tabIndex={0} aria-label={`${name}, scrollable`}>
        <table class="result-grid">
          <thead>
            <tr>
              <th scope="col" class="row-number">
                <span class="visually-hidden">Row</span>
              </th>
              {columns.map((column, at) => (
                <th
                  key={at}
                  scope="col"
                  class={NUMERIC_TYPES.has(column.type) ? "number" : undefined}
                  data-name={column.name}
                  data-type={column.type}
                >
                  {column.name}
                  {column.type ? <span class="column-type">{column.type}</span> : null}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at}>
                <td class="row-number">{at + 1}</td>
                {row.map((value, column) => (
                  <Cell key={column} value={value} type={columns[column]!.type} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

/** What the editor's script does with a result. */
function ResultTools({ hasMore }: { hasMore: boolean }) {
  return (
    <div class="result-tools needs-script">
      <span class="result-pager" hidden={!hasMore}>
        <button type="button" class="button quiet small" data-page="-1" aria-label="Previous rows" disabled>
          ‹
        </button>
        <span class="small" data-range />
        <button type="button" class="button quiet small" data-page="1" aria-label="Next rows">
          ›
        </button>
      </span>
      <fieldset class="sql-segments">
        <legend class="visually-hidden">Show as</legend>
        <button type="button" aria-pressed="true" data-view="table">
          Table
        </button>
        <button type="button" aria-pressed="false" data-view="chart">
          Chart
        </button>
      </fieldset>
      <fieldset class="sql-segments">
        <legend class="visually-hidden">Copy the rows</legend>
        <span class="muted" aria-hidden="true">
          Copy
        </span>
        {["CSV", "JSON", "Markdown"].map((form) => (
          <button key={form} type="button" data-copy-as={form}>
            <span class="visually-hidden">Copy as </span>
            {form}
          </button>
        ))}
      </fieldset>
    </div>
  );
}

function Cell({ value, type }: { value: string | null; type: string }) {
  const isNumber = NUMERIC_TYPES.has(type);
  if (value === null) return <td class={isNumber ? "null number" : "null"}>null</td>;
  return <td class={isNumber ? "number" : undefined}>{value}</td>;
}

function Failure(props: Omit<Props, "outcome"> & { failure: QueryFailure; number: number | undefined }) {
  const { failure, sql, advice, number } = props;
  const { message, detail, hint, sqlState, position } = failure;
  return (
    <div class="note wrong sql-failure" role="alert" data-position={position}>
      <p class="note-title">{number === undefined ? message : `Statement ${number}: ${message}`}</p>
      {position === undefined ? null : <Excerpt sql={sql} position={position} />}
      {detail ? <p>{detail}</p> : null}
      {hint ? <p>Hint: {hint}</p> : null}
      {advice ? <p>{advice}</p> : null}
      {sqlState ? <p class="muted small">SQLSTATE {sqlState}</p> : null}
    </div>
  );
}

/** The line of the error, with its number, and the part from the error on marked. */
function Excerpt({ sql, position }: { sql: string; position: number }) {
  const start = sql.lastIndexOf("\n", position - 1) + 1;
  const end = sql.indexOf("\n", position);
  const line = sql.slice(0, position).split("\n").length;
  const before = sql.slice(Math.max(start, position - EXCERPT), position);
  const after = cutText(sql.slice(position, end === -1 ? sql.length : end), EXCERPT);
  const [word = ""] = /^(?:\w+|.)/u.exec(after) ?? [];
  return (
    <p>
      <code class="sql-excerpt">
        <span class="muted">line {line}: </span>
        {before}
        <mark>{word}</mark>
        {after.slice(word.length)}
      </code>
    </p>
  );
}
