/** The records of one group of issues, a page at a time. */
import type { Base } from "../../core/control/bases";
import type { IssuePage } from "../../core/data-browser";
import type { IssueGroup, TableSpec } from "../../core/replica";
import { ButtonLink, Card, Empty, Table, Time } from "../components";
import { counted } from "../format";
import { FieldName, IssueRecord } from "./issues";

export function IssueRecords(props: {
  base: Base;
  shape: TableSpec[];
  /** Its names, and its ids and count if it is among the largest. */
  group: Pick<IssueGroup, "table" | "column" | "reason"> & Partial<IssueGroup>;
  page: IssuePage;
  isFirst: boolean;
}) {
  const { base, shape, group, page, isFirst } = props;
  const { table, column, reason, table_id = null, field_id = null, count } = group;
  const path = `/bases/${base.id}/issues`;
  const query = { table, field: column, reason };
  const pathOf = (more: Record<string, string>) =>
    `${path}/records?${new URLSearchParams({ ...query, ...more })}`;
  return (
    <Card
      id="issue-records"
      title={count === undefined ? "Records with this issue" : counted(count, "record")}
    >
      <div class="issue-group">
        <FieldName base={base} shape={shape} group={{ table, column, table_id, field_id }} />
        <p class="wrap">{reason}</p>
      </div>
      <Table
        caption="Records with this issue"
        rows={page.rows}
        empty={
          <Empty title={isFirst ? "No such issues now" : "No more records"}>
            The values have been corrected in Airtable, or the records were deleted.
          </Empty>
        }
        columns={(column) => [
          column({ text: "Record", class: "wrap" }, ({ id, value }) => (
            <IssueRecord base={base} table={table} tableId={table_id} id={id} value={value} />
          )),
          column("Since", ({ seenAt }) => <Time at={seenAt} form="minute" />),
        ]}
      />
      <nav class="actions" aria-label="Pages">
        <ButtonLink href={path}>All issues</ButtonLink>
        {isFirst ? null : <ButtonLink href={pathOf({})}>First page</ButtonLink>}
        {page.next === undefined ? null : (
          <ButtonLink href={pathOf({ after: page.next })}>Next page</ButtonLink>
        )}
      </nav>
    </Card>
  );
}
