/** The rows that SQL users have written, with what became of them. */
import type { Base } from "../../core/control/bases";
import type { ListedWrite } from "../../core/control/change-sets";
import { Ago, Card, Empty, Table } from "../components";
import { changesPath, ItemResult } from "./change-sets";
import { operationWords } from "./proposal";

interface WritesProps {
  base: Base;
  writes: ListedWrite[];
  /** Why the rows that wait in the database are not among them. */
  unread: string | undefined;
  /** Names of SQL users, by role. */
  users: ReadonlyMap<string, string>;
  /** Names in SQL, by the source's id of the table. */
  tables: ReadonlyMap<string, string>;
  now: Date;
}

export function WritesPage({ base, writes, unread, users, tables, now }: WritesProps) {
  const { sqlWrites, sqlWritesQueued } = base.settings;
  return (
    <Card id="writes" title="Writes with SQL">
      <p class="muted">
        What SQL users have written to Airtable, those without a result first.{" "}
        <a href="/docs/sql-writes">How to write</a>
      </p>
      {sqlWrites && sqlWritesQueued ? (
        <p class="muted">
          Writes are queued: a transaction is committed before Airtable has it.
          {unread === undefined ? null : ` Those that wait in the database could not be read: ${unread}`}
        </p>
      ) : null}
      <Table
        caption="Written rows, newest first"
        rows={writes}
        empty={
          <Empty title={base.settings.sqlWrites ? "No writes yet" : "Writes with SQL are off"}>
            {base.settings.sqlWrites ? (
              "SQL users that may write do so in the schema of views."
            ) : (
              <>
                Turn them on in the <a href={`/bases/${base.id}/settings`}>settings of this base</a>, under
                Proxy.
              </>
            )}
          </Empty>
        }
        columns={(column) => [
          column({ text: "Transaction", isHead: true, class: "nowrap" }, (one) =>
            one.state === "queued" ? (
              <Ago at={one.at} now={now} />
            ) : (
              <a href={`${changesPath(base)}/${one.set}`}>
                <Ago at={one.at} now={now} />
              </a>
            ),
          ),
          column({ text: "By", class: "wrap" }, (one) => users.get(one.role) ?? one.role),
          column("Operation", (one) => operationWords[one.operation]),
          column({ text: "Table", class: "wrap" }, (one) => tables.get(one.table) ?? one.table),
          column({ text: "Record", class: "nowrap" }, (one) => one.recordId ?? "–"),
          column({ text: "Result", class: "wrap" }, (one) => <ItemResult {...one} />),
        ]}
      />
    </Card>
  );
}
