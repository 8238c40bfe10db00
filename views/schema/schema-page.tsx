/** The schema of a base: the diagram of its tables, their columns, and the same as text for other programs. */
import type { Base } from "../../core/control/bases";
import type { Diagram, TypesFile, TypesLanguage } from "../../core/exports";
import { type ColumnSlots, type ColumnSpec, POSTGRES_COLUMNS, type TableSpec } from "../../core/replica";
import type { ColumnSample, TableSample } from "../../core/sql-editor";
import { ButtonLink, Card, Empty } from "../components";
import { FieldIcon } from "../components/field-icon";
import { Program } from "../components/program";
import { counted, inDigits } from "../format";
import { DiagramSvg } from "./diagram";
import { fieldTypeName } from "./field-types";

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
  const links = tables.flatMap(({ columns }) => columns).filter(({ type }) => type === "links").length;
  return (
    <div class="stack">
      <div class="schema-bar">
        <nav class="segments" aria-label="Schema as">
          {schemaViews.map(({ as, text }) => (
            <a
              key={as}
              href={`/bases/${base.id}/schema${as === "diagram" ? "" : `?as=${as}`}`}
              aria-current={as === view ? "page" : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
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

function ColumnsCard(props: { base: Base; shown: ShownTable; tables: TableSpec[]; path: string }) {
  const { base, shown, tables, path } = props;
  const { spec, slots, sample } = shown;
  const byId = new Map(tables.map((table) => [table.tableId, table]));
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
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      {/* biome-ignore lint/a11y/useSemanticElements: as all tables that scroll */}
      <div class="table-scroll" tabIndex={0} role="group" aria-label={`Columns of ${spec.name}`}>
        <table class="blocks schema-columns">
          <thead>
            <tr>
              <th scope="col">Column</th>
              <th scope="col">Type</th>
              <th scope="col">Airtable field</th>
              <th scope="col">Field type</th>
              <th scope="col" class="number">
                Empty
              </th>
              <th scope="col">Example</th>
            </tr>
          </thead>
          <tbody>
            <RecordColumn name="id" type="text" about="Record id" sample={sample} />
            <RecordColumn name="created_time" type="timestamp" about="Created time, UTC" sample={sample} />
            {spec.columns.map((column) => (
              <ColumnRow
                key={column.fieldId}
                column={column}
                sample={sample}
                linked={byId.get(column.linkedTableId ?? "")}
                path={path}
              />
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted small">
        {sample
          ? `Empty values and examples are from ${sample.rows < 1000 ? "all" : "the first"} ${counted(sample.rows, "row")}.`
          : "The rows cannot be read now, so there are no examples."}
      </p>
    </Card>
  );
}

function RecordColumn(props: { name: string; type: string; about: string; sample: TableSample | undefined }) {
  return (
    <tr>
      <th scope="row">
        <code>{props.name}</code>
      </th>
      <td data-label="Type">
        <code>{props.type}</code>
      </td>
      <td class="muted" data-label="Airtable field">
        {props.about}
      </td>
      <td />
      <Sample sample={props.sample?.columns.get(props.name)} rows={props.sample?.rows} />
    </tr>
  );
}

function ColumnRow(props: {
  column: ColumnSpec;
  sample: TableSample | undefined;
  linked: TableSpec | undefined;
  path: string;
}) {
  const { column, sample, linked, path } = props;
  return (
    <tr>
      <th scope="row" class="wrap">
        <code>{column.name}</code>
      </th>
      <td data-label="Type">
        <code>{column.columnType}</code>
      </td>
      <td class="wrap" data-label="Airtable field">
        <bdi>{column.sourceName}</bdi>
        {column.description ? (
          <span class="muted small described">
            <bdi>{column.description}</bdi>
          </span>
        ) : null}
      </td>
      <td class="wrap" data-label="Field type">
        <FieldIcon type={column.type} />
        {fieldTypeName(column)}
        {linked ? (
          <>
            {" "}
            <a class="chip" href={`${path}?table=${encodeURIComponent(linked.name)}#columns`}>
              {linked.name}
            </a>
          </>
        ) : null}
      </td>
      <Sample sample={sample?.columns.get(column.name)} rows={sample?.rows} />
    </tr>
  );
}

function Sample({ sample, rows }: { sample: ColumnSample | undefined; rows: number | undefined }) {
  if (!sample || !rows) {
    return (
      <>
        <td class="number muted" data-label="Empty">
          –
        </td>
        <td class="muted" data-label="Example">
          –
        </td>
      </>
    );
  }
  const percent = Math.round((100 * sample.empty) / rows);
  return (
    <>
      <td class={sample.empty === 0 ? "number muted" : "number"} data-label="Empty">
        {sample.empty > 0 && percent === 0 ? "< 1 %" : `${percent} %`}
      </td>
      <td class="example" data-label="Example">
        {sample.example === null ? <span class="muted">–</span> : sample.example}
      </td>
    </>
  );
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
  return (
    <>
      <nav class="segments" aria-label="Language">
        {languages.map((one) => (
          <a
            key={one.lang}
            href={`/bases/${base.id}/schema?as=types&lang=${one.lang}`}
            aria-current={one.lang === lang ? "page" : undefined}
          >
            {one.title}
          </a>
        ))}
      </nav>
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
