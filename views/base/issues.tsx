/**
 * What is not in SQL as it is in the source, by field and reason: values that do not fit their column, errors of the
 * source's own formulas, and customers' objects in the database that a rebuild could not carry over. A muted field's
 * issues are listed apart and do not count.
 */
import type { Base } from "../../core/control/bases";
import type { IssueGroup, TableSpec } from "../../core/replica";
import { factsOf } from "../../core/source";
import { Button, Card, Empty, Form, NewTabLink, Table } from "../components";
import { recordPath } from "../data/paths";
import { counted, inDigits } from "../format";
import { plainValue } from "../plain-value";

/** The groups that count, without muted fields and the source's own errors. */
export function openIssues(base: Pick<Base, "issues" | "issueCount" | "settings">): IssueGroup[] {
  return sorted(base).open;
}

interface IssuesProps {
  base: Base;
  /** The tables with their fields; empty while the database cannot be reached. */
  shape: TableSpec[];
}

export function IssuesPage({ base, shape }: IssuesProps) {
  const { open, formulas, muted, unlisted } = sorted(base);
  return (
    <>
      <Card id="issues-card" title={open.length > 0 ? `Issues: ${inDigits(base.openIssueCount)}` : "Issues"}>
        {open.length > 0 ? (
          <>
            <p class="muted">
              {unlisted > 0
                ? `The largest groups are listed; they leave out ${counted(unlisted, "issue")}. `
                : ""}
              In SQL, all issues are in the table <code>_sync_issues</code>.
            </p>
            <Groups base={base} shape={shape} groups={open} />
          </>
        ) : (
          <Empty title="No issues">
            {base.issueCount > 0
              ? "Only errors of formulas and issues of muted fields are left."
              : "Every value fits its column, and all of your own objects were kept."}{" "}
            In SQL, issues are in the table <code>_sync_issues</code>.
          </Empty>
        )}
      </Card>
      {formulas.length > 0 ? (
        <Card id="formula-errors" title="Errors of Airtable's formulas">
          <p class="muted">
            Airtable itself has an error in place of these values, so they are NULL in SQL. Nothing is lost,
            and they do not count as issues. To have values, correct the formula in Airtable.
          </p>
          <CellTable caption="Errors of Airtable's formulas" base={base} shape={shape} groups={formulas} />
        </Card>
      ) : null}
      <MutedFields base={base} shape={shape} groups={muted} />
    </>
  );
}

/** The groups by what they ask for, and the number of issues that are in none of them. */
function sorted({ issues, issueCount, settings }: Pick<Base, "issues" | "issueCount" | "settings">) {
  const muted = new Set(settings.mutedFields.map(({ tableId, fieldId }) => `${tableId} ${fieldId}`));
  const { muted: silent = [], ...others } = Object.groupBy(issues, (group) => {
    if (muted.has(fieldOf(group))) return "muted";
    return group.kind === "formula" ? "formulas" : "open";
  });
  const listed = issues.reduce((sum, { count }) => sum + count, 0);
  return { open: [], formulas: [], ...others, muted: silent, unlisted: issueCount - listed };
}

function fieldOf({ table_id, field_id }: Pick<IssueGroup, "table_id" | "field_id">): string {
  return `${table_id} ${field_id}`;
}

interface GroupsProps extends IssuesProps {
  groups: IssueGroup[];
}

function Groups({ groups, ...props }: GroupsProps) {
  const { objects = [], cells = [] } = Object.groupBy(groups, ({ kind }) =>
    kind === "object" ? "objects" : "cells",
  );
  return (
    <>
      {objects.length > 0 ? <ObjectTable issues={objects} /> : null}
      {cells.length > 0 ? (
        <>
          <p class="muted">
            Values that do not fit their column are NULL until you correct them in Airtable. The rest of the
            row is synced. <a href="/docs/sql#cells-that-do-not-fit">How to find them in SQL</a>
          </p>
          <CellTable caption="Cells that do not fit their column" groups={cells} {...props} />
        </>
      ) : null}
    </>
  );
}

function ObjectTable({ issues }: { issues: IssueGroup[] }) {
  return (
    <>
      <p class="muted">
        These views, indexes and other objects of yours could not be kept when their table changed. Run the
        statements in the database to recreate them.{" "}
        <a href="/docs/customer-objects">Which objects are kept</a>
      </p>
      <Table
        caption="Objects that a rebuild could not keep"
        rows={issues}
        columns={(column) => [
          column({ text: "Object", isHead: true, class: "wrap" }, (issue) => (
            <>
              <code>{issue.table}</code>
              {issue.column ? `: ${issue.column}` : null}
            </>
          )),
          column({ text: "Statements", class: "wrap" }, (issue) =>
            issue.value ? <code>{issue.value}</code> : "–",
          ),
          column({ text: "Reason", class: "wrap" }, (issue) => issue.reason),
        ]}
      />
    </>
  );
}

function CellTable({ caption, base, shape, groups }: GroupsProps & { caption: string }) {
  return (
    <Table
      caption={caption}
      rows={groups}
      columns={(column) => [
        column({ text: "Field", isHead: true, class: "wrap" }, (group) => (
          <FieldName base={base} shape={shape} group={group} />
        )),
        column({ text: "Reason", class: "wrap" }, (group) => group.reason),
        column({ text: "Records", isNumber: true }, (group) => <RecordCount base={base} group={group} />),
        column({ text: "Example", class: "wrap" }, (group) => <Example base={base} group={group} />),
        column({ text: "Mute", isHidden: true, class: "nowrap" }, (group) => (
          <MuteForm base={base} field={group} label={nameOf(shape, group)} />
        )),
      ]}
    />
  );
}

function RecordCount({ base, group }: { base: Base; group: IssueGroup }) {
  const { count, record_id, table, column, reason } = group;
  if (record_id === "") return inDigits(count);
  const query = new URLSearchParams({ table, field: column, reason });
  return (
    <a href={`/bases/${base.id}/issues/records?${query}`}>
      {inDigits(count)}
      <span class="visually-hidden"> {count === 1 ? "record" : "records"}</span>
    </a>
  );
}

/** One of the records: its page here, its value, and its page in the source. */
function Example({ base, group }: { base: Base; group: IssueGroup }) {
  if (group.record_id === "") return "–";
  return (
    <IssueRecord
      base={base}
      table={group.table}
      tableId={group.table_id}
      id={group.record_id}
      value={group.value}
    />
  );
}

/** A record with an issue, and the value that the source has for it. */
export function IssueRecord(props: {
  base: Base;
  table: string;
  tableId: string | null;
  id: string;
  value: string;
}) {
  const { base, table, tableId, id, value } = props;
  return (
    <>
      <a href={recordPath(base.id, table, id)}>
        <code>{id}</code>
      </a>
      {value === "" ? null : (
        <>
          : <bdi>{plainValue(value)}</bdi>
        </>
      )}
      <p class="small">
        <NewTabLink href={sourceUrl(base, tableId, id)}>Open in Airtable</NewTabLink>
      </p>
    </>
  );
}

function MuteForm(props: { base: Base; field: Pick<IssueGroup, "table_id" | "field_id">; label: string }) {
  const { base, field, label } = props;
  if (field.table_id === null || field.field_id === null) return null;
  const isMuted = base.settings.mutedFields.some(
    ({ tableId, fieldId }) => tableId === field.table_id && fieldId === field.field_id,
  );
  return (
    <Form
      action={`/bases/${base.id}/issues/mute`}
      values={{ table_id: field.table_id, field_id: field.field_id, muted: isMuted ? "off" : "on" }}
    >
      <Button isSmall>
        {isMuted ? "Unmute" : "Mute this field"}
        <span class="visually-hidden"> {label}</span>
      </Button>
    </Form>
  );
}

/** The muted fields with their issues, and those that have none now. */
function MutedFields({ base, shape, groups }: GroupsProps) {
  const { mutedFields } = base.settings;
  if (mutedFields.length === 0) return null;
  const found = new Set(groups.map(fieldOf));
  const quiet = mutedFields.filter(({ tableId, fieldId }) => !found.has(`${tableId} ${fieldId}`));
  return (
    <Card id="muted-fields" title="Muted fields">
      <p class="muted">
        Issues of these fields do not count, here and on the overview. They are still in{" "}
        <code>_sync_issues</code>.
      </p>
      {groups.length > 0 ? (
        <CellTable caption="Issues of muted fields" base={base} shape={shape} groups={groups} />
      ) : null}
      {quiet.length > 0 ? (
        <Table
          caption="Muted fields without issues"
          rows={quiet.map(({ tableId, fieldId }) => {
            const field = { table_id: tableId, field_id: fieldId };
            return { field, label: nameOf(shape, { ...field, table: tableId, column: fieldId }) };
          })}
          columns={(column) => [
            column({ text: "Without issues now", isHead: true, class: "wrap" }, ({ label }) => (
              <bdi>{label}</bdi>
            )),
            column({ text: "Mute", isHidden: true, class: "nowrap" }, (row) => (
              <MuteForm base={base} {...row} />
            )),
          ]}
        />
      ) : null}
    </Card>
  );
}

type NamedField = Pick<IssueGroup, "table_id" | "field_id" | "table" | "column">;

function columnOf(shape: TableSpec[], { table_id, field_id }: NamedField) {
  const table = shape.find(({ tableId }) => tableId === table_id);
  return { table, column: table?.columns.find(({ fieldId }) => fieldId === field_id) };
}

/** The names in the source, or those in SQL while the former are unknown. */
function nameOf(shape: TableSpec[], field: NamedField): string {
  const { table, column } = columnOf(shape, field);
  return `${table?.sourceName ?? field.table}, ${column?.sourceName ?? field.column}`;
}

/** The field's name in the source with a link to it, above the name of its column. */
export function FieldName({ base, shape, group }: IssuesProps & { group: NamedField }) {
  const { column } = columnOf(shape, group);
  const name = (
    <code>
      {group.table}
      {group.column === "" ? "" : `.${group.column}`}
    </code>
  );
  if (!column) return name;
  return (
    <>
      <NewTabLink href={sourceUrl(base, group.table_id, column.fieldId)}>
        <bdi>{column.sourceName}</bdi>
        <span class="visually-hidden"> in Airtable</span>
      </NewTabLink>
      <p class="small muted">{name}</p>
    </>
  );
}

/** A record or a field in the source's web app; its base if the table's id is unknown. */
function sourceUrl(
  base: Pick<Base, "platform" | "sourceBaseId">,
  tableId: string | null,
  partId: string,
): string {
  return factsOf(base.platform).recordUrl(base.sourceBaseId, ...(tableId === null ? [] : [tableId, partId]));
}
