/** The names of a base's tables and columns in SQL, and the forms that choose other ones. */
import type { Base } from "../../core/control/bases";
import type { TableSpec } from "../../core/replica";
import { Button, Card, Empty, ErrorNote, Form, Table } from "../components";
import { OldNamesCard, type OldNamesProps, Uses } from "./old-names";

/** The input that was refused for the shown table, and why. */
interface RefusedNames {
  /** By the name of the input. */
  written: Record<string, string>;
  error: string;
}

export interface NamesProps {
  base: Base;
  tables: TableSpec[];
  shown: TableSpec | undefined;
  refused?: RefusedNames | undefined;
  /** Absent where they are not needed. */
  old?: Omit<OldNamesProps, "base"> | undefined;
  /** Functions and triggers that name the shown table's columns. */
  texts?: OldNamesProps["uses"] | undefined;
}

/** The name of the input for a table's own name; those for its columns are the fields' ids. */
export const TABLE_INPUT = "table_name";

export function NamesPage({ base, tables, shown, refused, old, texts = [] }: NamesProps) {
  const settings = `/bases/${base.id}/settings#names`;
  return (
    <div class="stack">
      <p>
        {base.settings.pinnedNames
          ? "Names are pinned: when a table or a field is renamed in Airtable, its name in SQL stays."
          : "Names follow Airtable: when a table or a field is renamed there, it is renamed in SQL."}{" "}
        <a href={settings}>Change this in the settings</a>, or give a table or a column a name of your own
        here: it stays in either case.
      </p>
      {shown ? (
        <section class="schema-tables" aria-label="Names by table">
          <TableList base={base} tables={tables} shown={shown} />
          <TableNames base={base} table={shown} refused={refused} />
        </section>
      ) : (
        <Empty title="No tables yet">Names can be chosen when the first sync has finished.</Empty>
      )}
      {shown && texts.length > 0 ? (
        <Card id="texts" title={`Functions and triggers that name ${shown.name} or its columns`}>
          <p class="hint">
            Views follow a rename, and queries may use the old name for some days. These texts do not follow:
            change them when a name changes. The row of a trigger does not have a value under an old name.
          </p>
          <Uses base={base} uses={texts} />
        </Card>
      ) : null}
      {old ? <OldNamesCard base={base} {...old} /> : null}
    </div>
  );
}

function TableList({ base, tables, shown }: { base: Base; tables: TableSpec[]; shown: TableSpec }) {
  return (
    <nav aria-label="Tables" class="table-list">
      <ul>
        {tables.map(({ tableId, name, sourceName }) => (
          <li key={tableId}>
            <a
              href={`/bases/${base.id}/names?table=${encodeURIComponent(tableId)}`}
              aria-current={tableId === shown.tableId ? "true" : undefined}
              title={sourceName}
            >
              <span class="cut">{name}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function TableNames({
  base,
  table,
  refused,
}: {
  base: Base;
  table: TableSpec;
  refused: RefusedNames | undefined;
}) {
  const chosen = new Map(
    base.settings.ownNames
      .filter(({ tableId }) => tableId === table.tableId)
      .map(({ fieldId, name }) => [fieldId, name]),
  );
  const writtenIn = (input: string, fieldId: string | null) =>
    refused ? (refused.written[input] ?? "") : (chosen.get(fieldId) ?? "");
  return (
    <Card id="own-names" title={`Names of ${table.name}`}>
      <Form class="stack" action={`/bases/${base.id}/names?table=${encodeURIComponent(table.tableId)}`}>
        {refused ? <ErrorNote title="Nothing was changed">{refused.error}</ErrorNote> : null}
        <Table
          caption={`Names of ${table.name} and its columns`}
          rows={[
            { what: "Table", named: table, input: TABLE_INPUT, written: writtenIn(TABLE_INPUT, null) },
            ...table.columns.map((column) => ({
              what: "Column",
              named: column,
              input: column.fieldId,
              written: writtenIn(column.fieldId, column.fieldId),
            })),
          ]}
          columns={(column) => [
            column({ text: "In Airtable", isHead: true, class: "wrap" }, ({ what, named }) => (
              <>
                <bdi>{named.sourceName}</bdi>
                {what === "Table" ? <span class="muted small"> (table)</span> : null}
              </>
            )),
            column("Name in SQL", ({ named }) => <code>{named.name}</code>),
            column("Name of your own", ({ what, named, input, written }) => (
              <input
                name={input}
                value={written}
                placeholder={named.name}
                aria-label={`${what} ${named.name}: name of your own`}
                maxLength={63}
                autocomplete="off"
                spellcheck={false}
              />
            )),
          ]}
        />
        <p class="hint">
          Leave an input empty for an automatic name. New names are in SQL after the next sync, usually within
          seconds.
        </p>
        <Button>Save names</Button>
      </Form>
    </Card>
  );
}
