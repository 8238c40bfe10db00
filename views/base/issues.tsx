/**
 * Cells that did not fit their column, each with links to its field and record in the source; and customers' objects in
 * the database that a rebuild could not carry over, each with the statements that create it.
 */
import type { Base, BaseIssue } from "../../core/control/bases";
import type { TableSpec } from "../../core/replica";
import { factsOf } from "../../core/source";
import { Card, Empty } from "../components";
import { Table } from "../components/table";
import { recordPath } from "../data/paths";
import { inDigits } from "../format";
import { plainValue } from "../plain-value";

/** Issues on the overview; the page of issues has more. */
const ON_OVERVIEW = 10;

export function Issues({ base }: { base: Base }) {
  if (base.issueCount === 0) return null;
  return (
    <Card id="issues-card" title={`Issues: ${inDigits(base.issueCount)}`}>
      <IssueTables base={base} shape={[]} issues={base.issues.slice(0, ON_OVERVIEW)} />
      {base.issueCount > ON_OVERVIEW ? (
        <p>
          <a href={`/bases/${base.id}/issues`}>More issues</a>
        </p>
      ) : null}
    </Card>
  );
}

/** @param props.shape the tables with their fields; empty while the database cannot be reached */
export function IssuesPage({ base, shape }: { base: Base; shape: TableSpec[] }) {
  if (base.issueCount === 0) {
    return (
      <Card id="issues-card" title="Issues">
        <Empty title="No issues">
          Every value fits its column, and all of your own objects were kept. In SQL, issues are in the table{" "}
          <code>_sync_issues</code>.
        </Empty>
      </Card>
    );
  }
  return (
    <Card id="issues-card" title={`Issues: ${inDigits(base.issueCount)}`}>
      <p class="muted">
        {base.issueCount > base.issues.length
          ? `The latest ${inDigits(base.issues.length)} are listed. `
          : ""}
        In SQL, all issues are in the table <code>_sync_issues</code>.
      </p>
      <IssueTables base={base} shape={shape} issues={base.issues} />
    </Card>
  );
}

interface IssueTableProps {
  base: Base;
  shape: TableSpec[];
  issues: BaseIssue[];
}

function IssueTables({ base, shape, issues }: IssueTableProps) {
  const { cells = [], objects = [] } = Object.groupBy(issues, ({ record_id }) =>
    record_id === "" ? "objects" : "cells",
  );
  return (
    <>
      {objects.length > 0 ? <ObjectTable issues={objects} /> : null}
      {cells.length > 0 ? <CellTable base={base} shape={shape} issues={cells} /> : null}
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

function CellTable({ base, shape, issues }: IssueTableProps) {
  return (
    <>
      <p class="muted">
        Values that do not fit their column are NULL until you correct them in Airtable. The rest of the row
        is synced. <a href="/docs/sql#cells-that-do-not-fit">How to find them in SQL</a>
      </p>
      <Table
        caption="Cells that do not fit their column"
        head={[{ text: "Field" }, { text: "Record" }, { text: "Value in Airtable" }, { text: "Reason" }]}
      >
        {issues.map((issue) => (
          <tr key={`${issue.table} ${issue.record_id} ${issue.column}`}>
            <th scope="row" class="wrap">
              <FieldLink base={base} shape={shape} issue={issue} />
            </th>
            <td>
              <a href={recordPath(base.id, issue.table, issue.record_id)}>
                <code>{issue.record_id}</code>
              </a>
              <p class="small">
                <a href={sourceUrl(base, issue, issue.record_id)} target="_blank" rel="noopener noreferrer">
                  Open in Airtable<span class="visually-hidden">, in a new tab</span>
                </a>
              </p>
            </td>
            <td class="wrap">
              <bdi>{plainValue(issue.value)}</bdi>
            </td>
            <td class="wrap">{issue.reason}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** The field's name in the source with a link to it, above the name of its column. */
function FieldLink({ base, shape, issue }: Omit<IssueTableProps, "issues"> & { issue: BaseIssue }) {
  const column = shape
    .find(({ name }) => name === issue.table)
    ?.columns.find(({ name }) => name === issue.column);
  const name = (
    <code>
      {issue.table}.{issue.column}
    </code>
  );
  if (!column) return name;
  return (
    <>
      <a href={sourceUrl(base, issue, column.fieldId)} target="_blank" rel="noopener noreferrer">
        <bdi>{column.sourceName}</bdi>
        <span class="visually-hidden"> in Airtable, in a new tab</span>
      </a>
      <p class="small muted">{name}</p>
    </>
  );
}

/** A record or a field in the source's web app; its base if the table's id is unknown. */
function sourceUrl(
  base: Pick<Base, "platform" | "sourceBaseId" | "tables">,
  issue: BaseIssue,
  partId: string,
): string {
  const table = base.tables.find(({ name }) => name === issue.table)?.source_id;
  return factsOf(base.platform).recordUrl(base.sourceBaseId, ...(table === undefined ? [] : [table, partId]));
}
