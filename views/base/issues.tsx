/**
 * Cells that did not fit their column, each with a link to its record in the source; and customers' objects in the
 * database that a rebuild could not carry over, each with the statements that create it.
 */
import type { Base, BaseIssue } from "../../core/control/bases";
import { factsOf } from "../../core/source";
import { Card } from "../components";
import { Table } from "../components/table";
import { inDigits } from "../format";

/** Issues on the overview; the page of issues has more. */
const ON_OVERVIEW = 10;

export function Issues({ base }: { base: Base }) {
  if (base.issueCount === 0) return null;
  return (
    <Card id="issues-card" title={`Issues: ${inDigits(base.issueCount)}`}>
      <IssueTables base={base} issues={base.issues.slice(0, ON_OVERVIEW)} />
      {base.issueCount > ON_OVERVIEW ? (
        <p>
          <a href={`/bases/${base.id}/issues`}>More issues</a>
        </p>
      ) : null}
    </Card>
  );
}

export function IssuesPage({ base }: { base: Base }) {
  return (
    <Card id="issues-card" title={`Issues: ${inDigits(base.issueCount)}`}>
      <p class="muted">
        {base.issueCount === 0
          ? "No issues: every value fits its column, and all of your own objects were kept. "
          : ""}
        {base.issueCount > base.issues.length
          ? `The latest ${inDigits(base.issues.length)} are listed. `
          : ""}
        {base.issueCount === 0 ? "Issues would also be listed" : "All issues are also listed"} in the table{" "}
        <code>_sync_issues</code> of the database.
      </p>
      <IssueTables base={base} issues={base.issues} />
    </Card>
  );
}

function IssueTables({ base, issues }: { base: Base; issues: BaseIssue[] }) {
  const { cells = [], objects = [] } = Object.groupBy(issues, ({ record_id }) =>
    record_id === "" ? "objects" : "cells",
  );
  return (
    <>
      {objects.length > 0 ? <ObjectTable issues={objects} /> : null}
      {cells.length > 0 ? <CellTable base={base} issues={cells} /> : null}
    </>
  );
}

function ObjectTable({ issues }: { issues: BaseIssue[] }) {
  return (
    <>
      <p class="muted">
        These views, indexes and other objects of yours could not be kept when their table changed. Run the
        statements in the database to recreate them.{" "}
        <a href="/docs/customer-objects">Which objects are kept</a>
      </p>
      <Table
        caption="Objects that a rebuild could not keep"
        head={[{ text: "Object" }, { text: "Statements" }, { text: "Reason" }]}
      >
        {issues.map((issue) => (
          <tr key={`${issue.table} ${issue.column}`}>
            <th scope="row" class="wrap">
              <code>{issue.table}</code>
              {issue.column ? `: ${issue.column}` : null}
            </th>
            <td class="wrap">{issue.value ? <code>{issue.value}</code> : "–"}</td>
            <td class="wrap">{issue.reason}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function CellTable({ base, issues }: { base: Base; issues: BaseIssue[] }) {
  return (
    <>
      <p class="muted">
        Values that do not fit their column are NULL until you correct them in Airtable. The rest of the row
        is synced. <a href="/docs/sql#cells-that-do-not-fit">How to find them in SQL</a>
      </p>
      <Table
        caption="Cells that do not fit their column"
        head={[{ text: "Column" }, { text: "Record" }, { text: "Value in Airtable" }, { text: "Reason" }]}
      >
        {issues.map((issue) => (
          <tr key={`${issue.table} ${issue.record_id} ${issue.column}`}>
            <th scope="row" class="wrap">
              <code>
                {issue.table}.{issue.column}
              </code>
            </th>
            <td>
              <a href={recordUrl(base, issue)} target="_blank" rel="noopener noreferrer">
                {issue.record_id}
                <span class="visually-hidden"> in Airtable, in a new tab</span>
              </a>
            </td>
            <td class="wrap">
              <code>{issue.value}</code>
            </td>
            <td class="wrap">{issue.reason}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** The record in the source's web app; its base if the table's id is unknown. */
function recordUrl(base: Pick<Base, "platform" | "sourceBaseId" | "tables">, issue: BaseIssue): string {
  const table = base.tables.find(({ name }) => name === issue.table)?.source_id;
  const within = table === undefined ? [] : [table, issue.record_id];
  return factsOf(base.platform).recordUrl(base.sourceBaseId, ...within);
}
