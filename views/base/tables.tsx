/** The replicated tables with their counts, and one table's columns. */
import type { Base } from "../../core/control/bases";
import { type ColumnSlots, POSTGRES_COLUMNS, type TableSpec } from "../../core/replica";
import { Card } from "../components";
import { Table } from "../components/table";
import { inDigits } from "../format";
import { fieldTypeName } from "../schema/field-types";

export function Tables({ base }: { base: Base }) {
  return (
    <Card id="tables-card" title="Tables">
      {base.tables.length === 0 ? (
        <p class="muted">The base has no tables that are copied.</p>
      ) : (
        <Table
          caption="Tables of the database"
          head={[
            { text: "In Airtable" },
            { text: "In the database" },
            { text: "Records", isNumber: true },
            { text: "Columns", isHidden: true },
          ]}
        >
          {base.tables.map((table) => (
            <TableRow key={table.name} baseId={base.id} table={table} />
          ))}
        </Table>
      )}
    </Card>
  );
}

function TableRow({ baseId, table }: { baseId: string; table: Base["tables"][number] }) {
  const path = `/bases/${baseId}/tables/${encodeURIComponent(table.name)}`;
  return (
    <tr>
      <th scope="row" class="wrap">
        <a href={`/bases/${baseId}/data/${encodeURIComponent(table.name)}`}>
          <bdi>{table.source_name}</bdi>
        </a>
      </th>
      <td class="wrap">
        <code>{table.name}</code>
      </td>
      <td class="number">{inDigits(table.records)}</td>
      <td class="number">
        <a href={path} hx-get={path}>
          Columns<span class="visually-hidden"> of {table.name}</span>
        </a>
      </td>
    </tr>
  );
}

/** From this share of the columns that Postgres allows on, the page says that the table should be rebuilt. */
const FULL = 0.75;

/** How many columns the table has used; dropped ones count. */
function Slots({ baseId, slots: { name, used, dropped } }: { baseId: string; slots: ColumnSlots }) {
  if (dropped === 0 && used < POSTGRES_COLUMNS * FULL) return null;
  return (
    <p class={used < POSTGRES_COLUMNS * FULL ? "muted" : undefined}>
      The table has used {inDigits(used)} of the {inDigits(POSTGRES_COLUMNS)} columns that Postgres allows.{" "}
      {inDigits(dropped)} of them were dropped: each field that is deleted or gets another type leaves one.
      {used >= POSTGRES_COLUMNS * FULL && (
        <>
          {" "}
          A rebuild is due, which makes room: ask the operator to run{" "}
          <code>
            operator base rebuild {baseId} {name}
          </code>
          .
        </>
      )}
    </p>
  );
}

export function Columns(props: { spec: TableSpec; baseId: string; slots: ColumnSlots | undefined }) {
  const { spec, baseId, slots } = props;
  return (
    <>
      {slots && <Slots baseId={baseId} slots={slots} />}
      <ColumnTable spec={spec} />
    </>
  );
}

function ColumnTable({ spec }: { spec: TableSpec }) {
  return (
    <Table
      caption={`${spec.name}: columns, their types and fields`}
      head={[{ text: "Column" }, { text: "Type" }, { text: "Field in Airtable" }, { text: "Field type" }]}
    >
      <ColumnRow name="id" type="text" source="Record ID" fieldType="" />
      <ColumnRow name="created_time" type="timestamp" source="Created time, UTC" fieldType="" />
      {spec.columns.map((column) => (
        <ColumnRow
          key={column.fieldId}
          name={column.name}
          type={column.columnType}
          source={column.sourceName}
          fieldType={fieldTypeName(column)}
        />
      ))}
    </Table>
  );
}

function ColumnRow(props: { name: string; type: string; source: string; fieldType: string }) {
  return (
    <tr>
      <th scope="row" class="wrap">
        <code>{props.name}</code>
      </th>
      <td>
        <code>{props.type}</code>
      </td>
      <td class="wrap">
        <bdi>{props.source}</bdi>
      </td>
      <td class="wrap muted">{props.fieldType}</td>
    </tr>
  );
}
