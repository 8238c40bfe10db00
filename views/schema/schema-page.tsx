/** The schema of a base: the diagram of its tables, their columns, and the same as text for other programs. */
import type { Base } from "../../core/control/bases";
import type { Diagram, TypesFile, TypesLanguage } from "../../core/exports";
import { type ColumnSlots, type ColumnSpec, POSTGRES_COLUMNS, type TableSpec } from "../../core/replica";
import type { ColumnSample, TableSample } from "../../core/sql-editor";
import { ButtonLink, Card, Empty, Program, Table, Tabs } from "../components";
import { FieldIcon, fieldTypeName } from "../components/field-type";
import { counted, inDigits } from "../format";
import { DiagramSvg } from "./diagram";

export const schemaViews = [
  { as: "diagram", text: "Diagram" },
  { as: "sql", text: "SQL" },
  { as: "mermaid", text: "Mermaid" },
  { as: "dbt", text: "dbt" },
  { as: "types", text: "Types" },
] as const;
export type SchemaView = (typeof schemaViews)[number]["as"];

export interface ShownTable {
  spec: TableSpec;
  slots: ColumnSlots | undefined;
  /** Undefined if the rows cannot be read now. */
  sample: TableSample | undefined;
}

interface SchemaProps {
  base: Base;
  tables: TableSpec[];
  children: preact.ComponentChildren;
}

export function SchemaPage({ base, tables, view, children }: SchemaProps & { view: SchemaView }) {
  if (tables.length === 0) {
    return <Empty title="No tables yet">They appear here when the first sync has finished.</Empty>;
  }
  const pathOf = (as: SchemaView) => `/bases/${base.id}/schema${as === "diagram" ? "" : `?as=${as}`}`;
  const links = tables.flatMap(({ columns }) => columns).filter(({ type }) => type === "links").length;
  return (
    <div class="stack">
      <div class="schema-bar">
        <Tabs
          look="segments"
          label="Schema as"
          current={pathOf(view)}
          tabs={schemaViews.map(({ as, text }) => ({ href: pathOf(as), text }))}
        />
        <p class="muted small">
          {counted(tables.length, "table")}, {counted(links, "link field")} ·{" "}
          <a href={`/bases/${base.id}/schema-changes`}>Schema changes</a>
        </p>
      </div>
      {children}
    </div>
  );
}

export function SchemaDiagram(props: { base: Base; diagram: Diagram; script: string }) {
  const { base, diagram, script } = props;
  return (
    <section class="er-frame" aria-label="Diagram">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <section class="er-scroll" tabIndex={0} aria-label="Diagram, scrollable">
        <DiagramSvg diagram={diagram} path={`/bases/${base.id}/schema`} />
      </section>
      <div class="er-zoom needs-script">
        <button type="button" class="button small" data-zoom="in" title="Zoom in (+)">
          <span aria-hidden="true">+</span>
          <span class="visually-hidden">Zoom in</span>
        </button>
        <button type="button" class="button small" data-zoom="out" title="Zoom out (−)">
          <span aria-hidden="true">−</span>
          <span class="visually-hidden">Zoom out</span>
        </button>
        <button type="button" class="button small" data-zoom="fit" title="Show all (0)">
          Fit
        </button>
      </div>
      <script type="module" src={script} />
    </section>
  );
}

/** The tables, and the columns of the chosen one; replaced as a whole when another table is chosen. */
export function SchemaTables({
  base,
  tables,
  shown,
}: {
  base: Base;
  tables: TableSpec[];
  shown: ShownTable;
}) {
  const path = `/bases/${base.id}/schema`;
  const counts = new Map(base.tables.map(({ name, records }) => [name, records]));
  return (
    <section id="columns" class="schema-tables" aria-label="Tables and columns">
      <nav aria-label="Tables" class="table-list">
        <ul>
          {tables.map(({ name, sourceName }) => (
            <li key={name}>
              <a
                href={`${path}?table=${encodeURIComponent(name)}#columns`}
                hx-get={`${path}?table=${encodeURIComponent(name)}`}
                hx-target="#columns"
                hx-swap="outerHTML"
                aria-current={name === shown.spec.name ? "true" : undefined}
                title={sourceName}
              >
                <span class="cut">{name}</span>
                <span class="muted small">{counts.has(name) ? inDigits(counts.get(name)!) : ""}</span>
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <ColumnsCard base={base} shown={shown} tables={tables} path={path} />
    </section>
  );
}

/** From this share of the columns that Postgres allows on, the page says that the table should be rebuilt. */
const FULL = 0.75;

/** How many columns the table has used; dropped ones count. */
export function Slots({ baseId, slots: { name, used, dropped } }: { baseId: string; slots: ColumnSlots }) {
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

interface ColumnsProps {
  base: Base;
  shown: ShownTable;
  tables: TableSpec[];
  path: string;
}

function ColumnsCard(props: ColumnsProps) {
  const { base, shown } = props;
  const { spec, slots, sample } = shown;
  return (
    <Card
      id="schema-table"
      title={spec.name}
      actions={
        <>
          <ButtonLink href={`/bases/${base.id}/names?table=${encodeURIComponent(spec.tableId)}`} isSmall>
            Names
          </ButtonLink>
          <ButtonLink href={`/bases/${base.id}/data/${encodeURIComponent(spec.name)}`} isSmall>
            Browse rows
          </ButtonLink>
        </>
      }
    >
      <p class="muted">
        <bdi>{spec.sourceName}</bdi> in Airtable. {counted(spec.columns.length + 2, "column")}.
        {spec.description ? (
          <>
            {" "}
            <bdi>{spec.description}</bdi>
          </>
        ) : null}
      </p>
      {slots ? <Slots baseId={base.id} slots={slots} /> : null}
      <Columns {...props} />
      <p class="muted small">
        {sample
          ? `Empty values and examples are from ${sample.rows < 1000 ? "all" : "the first"} ${counted(sample.rows, "row")}.`
          : "The rows cannot be read now, so there are no examples."}
      </p>
    </Card>
  );
}

function Columns({ shown: { spec, sample }, tables, path }: ColumnsProps) {
  const byId = new Map(tables.map((table) => [table.tableId, table]));
  const sampleOf = (name: string) => (sample?.rows ? sample.columns.get(name) : undefined);
  const rows: { name: string; type: string; about?: string; field?: ColumnSpec }[] = [
    { name: "id", type: "text", about: "Record id" },
    { name: "created_time", type: "timestamp", about: "Created time, UTC" },
    ...spec.columns.map((field) => ({ name: field.name, type: field.columnType, field })),
  ];
  return (
    <Table
      caption={`Columns of ${spec.name}`}
      class="schema-columns"
      rows={rows}
      columns={(column) => [
        column({ text: "Column", isHead: true, class: "wrap" }, ({ name }) => <code>{name}</code>),
        column("Type", ({ type }) => <code>{type}</code>),
        column({ text: "Airtable field", class: "wrap" }, ({ about, field }) => (
          <>
            {field ? <bdi>{field.sourceName}</bdi> : <span class="muted">{about}</span>}
            {field?.description ? (
              <span class="muted small described">
                <bdi>{field.description}</bdi>
              </span>
            ) : null}
          </>
        )),
        column({ text: "Field type", class: "wrap" }, ({ field }) =>
          field ? <Field field={field} linked={byId.get(field.linkedTableId ?? "")} path={path} /> : null,
        ),
        column(
          {
            text: "Empty",
            isNumber: true,
            class: ({ name }) => (sampleOf(name)?.empty ? undefined : "muted"),
          },
          ({ name }) => emptyShare(sampleOf(name), sample?.rows ?? 0),
        ),
        column(
          { text: "Example", class: ({ name }) => (sampleOf(name) ? "example" : "muted") },
          ({ name }) => sampleOf(name)?.example ?? <span class="muted">–</span>,
        ),
      ]}
    />
  );
}

function Field(props: { field: ColumnSpec; linked: TableSpec | undefined; path: string }) {
  const { field, linked, path } = props;
  return (
    <>
      <FieldIcon type={field.type} />
      {fieldTypeName(field)}
      {linked ? (
        <>
          {" "}
          <a class="chip" href={`${path}?table=${encodeURIComponent(linked.name)}#columns`}>
            {linked.name}
          </a>
        </>
      ) : null}
    </>
  );
}

function emptyShare(sample: ColumnSample | undefined, rows: number): string {
  if (!sample) return "–";
  const percent = Math.round((100 * sample.empty) / rows);
  return sample.empty > 0 && percent === 0 ? "< 1 %" : `${percent} %`;
}

/** Files that one page shows, and the characters of each: longer ones are only downloaded. */
const MOST_FILES = 20;
const MOST_TEXT = 100_000;

const TEXTS = {
  sql: {
    title: "SQL definitions",
    name: "schema.sql",
    about: "Creates empty tables of the same shape in another database. ",
  },
  mermaid: {
    title: "Mermaid diagram",
    name: "er-diagram.mmd",
    about: "GitHub, GitLab, Notion and many editors draw it. ",
  },
  dbt: {
    title: "dbt sources",
    name: "dbt-sources.yml",
    about: "Save it in your dbt project as models/sources.yml. ",
  },
} as const;

/** Of a text that the page shows; the file has all. */
const MOST_LINES = 2000;

export function SchemaText(props: { base: Base; view: keyof typeof TEXTS; code: string }) {
  const { base, view, code } = props;
  const { title, name, about } = TEXTS[view];
  const lines = code.split("\n");
  const isLong = lines.length > MOST_LINES;
  return (
    <Program
      id={`schema-${view}`}
      title={title}
      name={name}
      code={isLong ? `${lines.slice(0, MOST_LINES).join("\n")}\n` : code}
    >
      <p>
        {about}
        {isLong ? `These are the first ${inDigits(MOST_LINES)} of ${inDigits(lines.length)} lines. ` : null}
        <a href={`/bases/${base.id}/${name}`} download>
          Download {name}
        </a>
      </p>
    </Program>
  );
}

/** The types of one language, with a choice of the others. */
export function SchemaTypes(props: {
  base: Base;
  lang: TypesLanguage;
  languages: { lang: TypesLanguage; title: string }[];
  files: TypesFile[];
}) {
  const { base, lang, languages, files } = props;
  const pathOf = (one: TypesLanguage) => `/bases/${base.id}/schema?as=types&lang=${one}`;
  return (
    <>
      <Tabs
        look="segments"
        label="Language"
        current={pathOf(lang)}
        tabs={languages.map((one) => ({ href: pathOf(one.lang), text: one.title }))}
      />
      {files.slice(0, MOST_FILES).map(({ path, text }, index) => {
        const download = (
          <p>
            {index === 0 ? "Generate it again after changes of the tables in Airtable. " : null}
            {text.length > MOST_TEXT ? `It has ${inDigits(text.split("\n").length)} lines. ` : null}
            <a href={`/bases/${base.id}/types/${lang}/${encodeURIComponent(path)}`} download>
              Download {path}
            </a>
          </p>
        );
        return text.length > MOST_TEXT ? (
          <Card key={path} title={path}>
            {download}
          </Card>
        ) : (
          <Program key={path} id={`types-${index}`} title={path} name={path} code={text}>
            {download}
          </Program>
        );
      })}
      {files.length > MOST_FILES ? (
        <p class="muted">
          And {counted(files.length - MOST_FILES, "more file")}: the API returns all of them at{" "}
          <code>
            /api/v1/bases/{base.id}/types?lang={lang}
          </code>
          .
        </p>
      ) : null}
    </>
  );
}
