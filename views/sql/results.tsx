/** What a run of the SQL editor returned: a grid per statement, and the error of the one that failed. */
import {
  NUMERIC_TYPES,
  type QueryFailure,
  type QueryOutcome,
  type StatementResult,
} from "../../core/sql-editor";

/** Longest text of a cell that is shown, in UTF-16 units. */
const CELL_LENGTH = 500;
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
  return (
    <>
      {results.map((result, at) => (
        <Result key={at} result={result} number={hasSeveral ? at + 1 : undefined} />
      ))}
      {failure ? (
        <Failure {...{ failure, sql, advice }} number={hasSeveral ? results.length + 1 : undefined} />
      ) : (
        <p class="muted small">{ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`}</p>
      )}
    </>
  );
}

function Result({ result, number }: { result: StatementResult; number: number | undefined }) {
  const { columns, rows, isCut } = result;
  const name = number === undefined ? "Result" : `Result ${number}`;
  if (columns.length === 0) return <p class="muted">{name}: done, no rows</p>;
  const count = `${rows.length.toLocaleString("en-US")} ${rows.length === 1 ? "row" : "rows"}`;
  return (
    <section class="result" aria-label={name}>
      <p class="result-head">
        <strong>{number === undefined ? count : `${name}: ${count}`}</strong>
        {isCut ? <span class="muted"> shown; there are more. Download CSV to get them.</span> : null}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section class="grid-scroll" tabIndex={0} aria-label={`${name}, scrollable`}>
        <table class="result-grid">
          <thead>
            <tr>
              <th scope="col" class="row-number">
                <span class="visually-hidden">Row</span>
              </th>
              {columns.map((column, at) => (
                <th key={at} scope="col" class={NUMERIC_TYPES.has(column.type) ? "number" : undefined}>
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

function Cell({ value, type }: { value: string | null; type: string }) {
  const isNumber = NUMERIC_TYPES.has(type);
  if (value === null) return <td class={isNumber ? "null number" : "null"}>null</td>;
  const text = value.length > CELL_LENGTH ? `${value.slice(0, CELL_LENGTH)}…` : value;
  return <td class={isNumber ? "number" : undefined}>{text}</td>;
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
  const after = sql.slice(position, Math.min(end === -1 ? sql.length : end, position + EXCERPT));
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
