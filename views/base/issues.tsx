/** Cells that did not fit their column, each with the way to its record in the source. */
import type { Base, BaseIssue } from "../../core/control";
import { Card } from "../components";
import { Table } from "../components/table";
import { inDigits } from "../format";

/** Issues on the overview; the issues' own page has more. */
const ON_OVERVIEW = 10;

export function Issues({ base }: { base: Base }) {
  if (base.issueCount === 0) return null;
  return (
    <Card id="issues-card" title={`Issues: ${inDigits(base.issueCount)}`}>
      <p class="muted">
        Values that do not fit their column are NULL until they are mended in the source. The rest of the row
        is there.
      </p>
      <IssueTable base={base} issues={base.issues.slice(0, ON_OVERVIEW)} />
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
        {base.issueCount === 0 ? "None: every value fits its column. " : ""}
        {base.issueCount > base.issues.length
          ? `The latest ${inDigits(base.issues.length)} are listed. `
          : ""}
        {base.issueCount === 0 ? "Any would also be" : "All of them are"} in the table{" "}
        <code>_sync_issues</code> of the replica.
      </p>
      {base.issues.length > 0 ? <IssueTable base={base} issues={base.issues} /> : null}
    </Card>
  );
}

function IssueTable({ base, issues }: { base: Base; issues: BaseIssue[] }) {
  return (
    <Table
      caption="Cells that did not fit their column"
      head={[{ text: "Column" }, { text: "Record" }, { text: "Value in the source" }, { text: "Reason" }]}
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
              <span class="visually-hidden"> in the source, in a new tab</span>
            </a>
          </td>
          <td class="wrap">
            <code>{issue.value}</code>
          </td>
          <td class="wrap">{issue.reason}</td>
        </tr>
      ))}
    </Table>
  );
}

/** The record in the source's own pages; its base where the table's id is not known. */
export function recordUrl(base: Pick<Base, "sourceBaseId" | "tables">, issue: BaseIssue): string {
  const table = base.tables.find(({ name }) => name === issue.table)?.source_id;
  const parts = table === undefined ? [base.sourceBaseId] : [base.sourceBaseId, table, issue.record_id];
  return `https://airtable.com/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/")}`;
}
