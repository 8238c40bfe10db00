/** The replicated tables: their records, last changes and issues, and the ways to their rows, to SQL and to their schema. */
import type { Base } from "../../core/control/bases";
import { ButtonLink, Card } from "../components";
import { Ago } from "../components/ago";
import { Table } from "../components/table";
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
  const issues = openIssues(base);
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
      {base.tables.length === 0 ? (
        <p class="muted">The base has no tables that are copied.</p>
      ) : (
        <Table
          caption="Tables of the database"
          head={[
            { text: "In Airtable" },
            { text: "In the database" },
            { text: "Records", isNumber: true },
            { text: "Last change", isNumber: true },
            { text: "Issues", isNumber: true },
            { text: "Open", isHidden: true },
          ]}
        >
          {base.tables.map((table) => (
            <TableRow
              key={table.name}
              base={base}
              table={table}
              changedAt={changes.get(table.source_id)}
              now={now}
              issues={issues.reduce((sum, one) => sum + (one.table === table.name ? one.count : 0), 0)}
            />
          ))}
        </Table>
      )}
    </Card>
  );
}

interface TableRowProps {
  base: Base;
  table: Base["tables"][number];
  changedAt: Date | undefined;
  now: Date;
  issues: number;
}

function TableRow({ base, table, changedAt, now, issues }: TableRowProps) {
  const { name, source_name: sourceName, records } = table;
  const rows = tablePath(base.id, name);
  const of = <span class="visually-hidden"> of {name}</span>;
  return (
    <tr>
      <th scope="row" class="wrap">
        <a href={rows}>
          <bdi>{sourceName}</bdi>
        </a>
      </th>
      <td class="wrap">
        <code>{name}</code>
      </td>
      <td class="number">{inDigits(records)}</td>
      <td class={changedAt ? "number nowrap" : "number minor"}>
        {changedAt ? <Ago at={changedAt} now={now} /> : <span class="muted">–</span>}
      </td>
      <td class={issues === 0 ? "number minor" : "number"}>
        {issues === 0 ? (
          <span class="muted">–</span>
        ) : (
          <a href={`/bases/${base.id}/issues`} title={counted(issues, "issue")}>
            {inDigits(issues)}
            {of}
          </a>
        )}
      </td>
      <td>
        <div class="row-links">
          <ButtonLink kind="quiet" isSmall href={rows}>
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
      </td>
    </tr>
  );
}
