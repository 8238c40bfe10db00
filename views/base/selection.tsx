/** What of a base is copied: its tables; and one table's fields and view. */
import type { Base } from "../../core/control/bases";
import {
  type FieldTreatment,
  isTableCopied,
  mayBeHashed,
  type NewTables,
  type SourceField,
  type SourceSelection,
  type SourceTable,
} from "../../core/source";
import {
  Button,
  ButtonLink,
  Card,
  Empty,
  ErrorNote,
  Field,
  Form,
  Link,
  Note,
  SelectField,
  Table,
} from "../components";
import { fieldTypeName } from "../components/field-type";
import { counted } from "../format";

/** Whose selection it is: a base's, or that of one that is being connected. */
export interface SelectionPlace {
  /** Of the page and its forms. */
  path: string;
  unanswered: Base["unansweredTables"];
  /** Where to go on, if the selection is one step of several. */
  next?: { href: string; text: string };
}

export function placeOf(base: Base): SelectionPlace {
  return { path: selectionPath(base), unanswered: base.unansweredTables };
}

interface SelectionProps {
  place: SelectionPlace;
  selection: SourceSelection;
  /** What the source has. */
  tables: SourceTable[];
  search: string;
  error?: string | undefined;
}

const newTablesText: Record<NewTables, string> = {
  copy: "Copy them",
  ask: "Ask: do not copy them until you decide here",
  ignore: "Ignore them",
};

const treatmentText: Record<FieldTreatment | "copied", string> = {
  copied: "Copied",
  hashed: "Hashed",
  omitted: "Omitted",
};

/** The tables whose name contains the text, or of one table the fields. */
export function namedLike<Named extends { name: string }>(all: readonly Named[], search: string): Named[] {
  const wanted = search.toLowerCase();
  return all.filter(({ name }) => name.toLowerCase().includes(wanted));
}

/** Instead of the forms, if the source cannot be asked. */
export function NotSelectable({ path, error }: { path: string; error: string }) {
  return (
    <>
      <ErrorNote title="Airtable could not be asked for the base's tables">{error}</ErrorNote>
      <ButtonLink href={path}>Try again</ButtonLink>
    </>
  );
}

export function SelectedTables({ place, selection, tables, search, error }: SelectionProps) {
  const shown = namedLike(tables, search);
  return (
    <Card id="copied-data" title="Copied data">
      <p class="muted">
        Only what is chosen here leaves Airtable. A table that is not copied costs no calls. A change reads
        only the tables that get other columns. <a href="/docs/selection">How it works</a>
      </p>
      <UnansweredNote place={place} />
      {error ? <ErrorNote title="Nothing was changed">{error}</ErrorNote> : null}
      <Search place={place} search={search} label="Find a table" />
      <Form action={place.path} class="stack" values={{ q: search }}>
        <input type="hidden" name="shown" value={shown.map(({ id }) => id).join(" ")} />
        <SelectField
          label="New tables"
          name="new_tables"
          value={selection.newTables}
          options={Object.entries(newTablesText).map(([value, text]) => ({ value, text }))}
          hint="What happens to tables that are created in Airtable from now on."
        />
        <Table
          caption="Tables of the base in Airtable"
          rows={shown}
          empty={<Empty title="No table has this name" />}
          columns={(column) => [
            column({ text: "Table", isHead: true, class: "wrap" }, (table) => {
              const id = `table_${table.id}`;
              const isCopied = isTableCopied(selection, table.id);
              return (
                <>
                  <input type="checkbox" id={id} name={id} value="on" checked={isCopied} />{" "}
                  <label for={id}>
                    <bdi>{table.name}</bdi>
                  </label>
                </>
              );
            }),
            column({ text: "Copied", class: "wrap" }, (table) => summaryOf(selection, table)),
            column({ text: "Action", isHidden: true, class: "number" }, (table) => (
              <ButtonLink isSmall href={withQuery(place.path, { table: table.id })}>
                Fields and records<span class="visually-hidden"> of {table.name}</span>
              </ButtonLink>
            )),
          ]}
        />
        <div class="actions">
          <Button kind="primary">Save</Button>
          <Button name="set" value="copied">
            Copy all shown
          </Button>
          <Button name="set" value="omitted">
            Copy none shown
          </Button>
          <Next place={place} />
        </div>
      </Form>
    </Card>
  );
}

function summaryOf(selection: SourceSelection, { id, fields, views = [] }: SourceTable): string {
  if (!isTableCopied(selection, id)) return "Not copied";
  const { viewId, fields: treatments = {} } = selection.tables[id] ?? {};
  const of = (treatment: FieldTreatment) =>
    fields.filter((field) => treatments[field.id] === treatment).length;
  const [omitted, hashed] = [of("omitted"), of("hashed")];
  const parts = [
    omitted === 0 ? "All fields" : `${fields.length - omitted} of ${counted(fields.length, "field")}`,
    ...(hashed > 0 ? [`${hashed} hashed`] : []),
    ...(viewId === undefined
      ? []
      : [`view “${views.find((view) => view.id === viewId)?.name ?? `${viewId}, which is gone`}”`]),
  ];
  return parts.join(", ");
}

export function SelectedFields(props: SelectionProps & { table: SourceTable }) {
  const { place, selection, table, search, error } = props;
  const { viewId = "", fields: treatments = {} } = selection.tables[table.id] ?? {};
  const shown = namedLike(table.fields, search);
  const views = (table.views ?? []).map((view) => ({
    value: view.id,
    text: `Only those in the view ${view.name}`,
  }));
  const isGone = viewId !== "" && !views.some(({ value }) => value === viewId);
  return (
    <Card
      id="copied-fields"
      title={`Copied data of ${table.name}`}
      actions={
        <ButtonLink isSmall href={place.path}>
          All tables
        </ButtonLink>
      }
    >
      {isTableCopied(selection, table.id) ? null : <Note tone="warn">This table is not copied.</Note>}
      {isGone ? (
        <Note tone="warn" title="The chosen view no longer exists in Airtable">
          The table keeps its rows, and is not updated until you choose another view or all records.
        </Note>
      ) : null}
      {error ? <ErrorNote title="Nothing was changed">{error}</ErrorNote> : null}
      <Search place={place} search={search} label="Find a field" table={table.id} />
      <Form action={place.path} class="stack" values={{ q: search, table: table.id }}>
        <SelectField
          label="Records"
          name="view"
          value={viewId}
          options={[{ value: "", text: "All records" }, ...views]}
          hint="A record that enters or leaves the view without an edit appears or disappears within one full check."
        />
        <Table
          caption={`Fields of ${table.name}`}
          rows={shown}
          empty={<Empty title="No field has this name" />}
          columns={(column) => [
            column({ text: "Field", isHead: true, class: "wrap" }, ({ id, name }) => (
              <label for={`field_${id}`}>
                <bdi>{name}</bdi>
              </label>
            )),
            column("Type", fieldTypeName),
            column("Copied as", (field) => (
              <select id={`field_${field.id}`} name={`field_${field.id}`}>
                {treatmentsFor(field, table).map((one) => (
                  <option key={one} value={one} selected={one === (treatments[field.id] ?? "copied")}>
                    {treatmentText[one]}
                  </option>
                ))}
              </select>
            )),
          ]}
        />
        <div class="actions">
          <Button kind="primary">Save</Button>
          {(["copied", "hashed", "omitted"] as const).map((treatment) => (
            <Button key={treatment} name="set" value={treatment}>
              {treatmentText[treatment]}: all shown
            </Button>
          ))}
          <Next place={place} />
        </div>
        <p class="hint">
          A hash is the same wherever the same value is, so it joins and groups, and does not show the value.
          The primary field can be hashed, but not omitted.
        </p>
      </Form>
    </Card>
  );
}

/** How the field may be copied. */
export function treatmentsFor(
  field: SourceField,
  { primaryFieldId }: SourceTable,
): (FieldTreatment | "copied")[] {
  return [
    "copied",
    ...(mayBeHashed(field) ? ["hashed" as const] : []),
    ...(field.id === primaryFieldId ? [] : ["omitted" as const]),
  ];
}

function Next({ place: { next } }: { place: SelectionPlace }) {
  return next ? <ButtonLink href={next.href}>{next.text}</ButtonLink> : null;
}

function Search(props: { place: SelectionPlace; search: string; label: string; table?: string }) {
  const { place, search, label, table } = props;
  return (
    <form action={place.path} class="search">
      {table === undefined ? null : <input type="hidden" name="table" value={table} />}
      <Field label={label} name="q" type="search" value={search} />
      <Button>Find</Button>
    </form>
  );
}

/** New tables that wait for a decision; nothing if there are none. */
export function Unanswered({ base }: { base: Base }) {
  return <UnansweredNote place={placeOf(base)} />;
}

function UnansweredNote({ place: { path, unanswered = [] } }: { place: SelectionPlace }) {
  if (unanswered.length === 0) return null;
  return (
    <Note tone="warn" title={`${counted(unanswered.length, "new table")} in Airtable, not copied`}>
      <p>
        {unanswered.map(({ id, name }, index) => (
          <span key={id}>
            {index > 0 ? ", " : ""}
            <bdi>{name}</bdi>
          </span>
        ))}
        . <Link href={path}>Choose whether to copy</Link> them.
      </p>
    </Note>
  );
}

export function selectionPath({ id }: Pick<Base, "id">): string {
  return `/bases/${id}/selection`;
}

export function withQuery(path: string, query: Record<string, string>): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
  return search === "" ? path : `${path}?${search}`;
}
