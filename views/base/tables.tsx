/** The replicated tables: their records, last changes and issues, and the ways to their rows, to SQL and to their schema. */
import type { Base } from "../../core/control/bases";
import { Ago, ButtonLink, Card, Table } from "../components";
import { tablePath } from "../data/paths";
import { counted, inDigits } from "../format";
import { openIssues } from "./issues";
import { QueryTable } from "./run-query";

interface TablesProps {
  base: Base;
  /** When the records of each table last changed, by the source's id. */
  changes: ReadonlyMap<string, Date>;
  now: Date;
}

export function Tables({ base, changes, now }: TablesProps) {
  const open = openIssues(base);
  const rows = base.tables.map(({ name, source_id, source_name: sourceName, records }) => ({
    name,
    sourceName,
    records,
    changedAt: changes.get(source_id),
    issues: open.reduce((sum, one) => sum + (one.table === name ? one.count : 0), 0),
    of: <span class="visually-hidden"> of {name}</span>,
  }));
  return (
    <Card
      id="tables-card"
      title="Tables"
      actions={
        <ButtonLink isSmall kind="quiet" href={`/bases/${base.id}/schema-changes`}>
          Schema changes
        </ButtonLink>
      }
    >
      <Table
        caption="Tables of the database"
        rows={rows}
        empty={<p class="muted">The base has no tables that are copied.</p>}
        columns={(column) => [
          column({ text: "In Airtable", isHead: true, class: "wrap" }, ({ name, sourceName }) => (
            <a href={tablePath(base.id, name)}>
              <bdi>{sourceName}</bdi>
            </a>
          )),
          column({ text: "In the database", class: "wrap" }, ({ name }) => <code>{name}</code>),
          column({ text: "Records", isNumber: true }, ({ records }) => inDigits(records)),
          column(
            {
              text: "Last change",
              isNumber: true,
              class: ({ changedAt }) => (changedAt ? "nowrap" : "minor"),
            },
            ({ changedAt }) => (changedAt ? <Ago at={changedAt} now={now} /> : <span class="muted">–</span>),
          ),
          column(
            { text: "Issues", isNumber: true, class: ({ issues }) => (issues === 0 ? "minor" : undefined) },
            ({ issues, of }) =>
              issues === 0 ? (
                <span class="muted">–</span>
              ) : (
                <a href={`/bases/${base.id}/issues`} title={counted(issues, "issue")}>
                  {inDigits(issues)}
                  {of}
                </a>
              ),
          ),
          column({ text: "Open", isHidden: true }, ({ name, of }) => (
            <div class="row-links">
              <ButtonLink kind="quiet" isSmall href={tablePath(base.id, name)}>
                Rows{of}
              </ButtonLink>
              <QueryTable base={base} table={name} kind="quiet" isSmall>
                SQL{of}
              </QueryTable>
              <ButtonLink
                kind="quiet"
                isSmall
                href={`/bases/${base.id}/schema?table=${encodeURIComponent(name)}#columns`}
              >
                Schema{of}
              </ButtonLink>
            </div>
          )),
        ]}
      />
    </Card>
  );
}
