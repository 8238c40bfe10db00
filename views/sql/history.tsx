/** The queries that the current user ran, the latest first. */

import type { PastQuery } from "../../core/sql-editor";
import { Ago, Form } from "../components";
import { counted } from "../format";

export function QueryHistory({ history, path }: { history: PastQuery[]; path: string }) {
  if (history.length === 0)
    return <p class="muted small">Queries that you run appear here, for you alone.</p>;
  const now = new Date();
  return (
    <>
      <ul class="query-list">
        {history.map(({ id, sql, ranAt, rows }) => (
          <li key={id}>
            <a href={`${path}?past=${id}`} data-query="">
              <code>{sql}</code>
              <span class={rows === null ? "failed small" : "muted small"}>
                <Ago at={ranAt} now={now} /> · {rows === null ? "failed" : counted(rows, "row")}
              </span>
            </a>
          </li>
        ))}
      </ul>
      <Form action={`${path}/history/clear`}>
        <button type="submit" class="button quiet small">
          Clear history
        </button>
      </Form>
    </>
  );
}
