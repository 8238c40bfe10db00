/**
 * The indexed columns of a base: a list, from which one is removed, and a choice of table and column, by which one is
 * added. Without JavaScript, and for many at once, they are lines of text.
 */
import { type Base, type Setting, settingByName } from "../../core/control/bases";
import type { TableSpec } from "../../core/replica";
import { Button, Form, More, SelectField, TextAreaField, useMay } from "../components";
import { explained, indexLines, type RefusedSetting } from "./setting-form";

const MOST_ROWS = 12;
const setting = settingByName("indexes") as Setting;

/** @param props.shape the tables with their columns; empty while the database cannot be reached */
export function IndexForm(props: { base: Base; shape: TableSpec[]; refused: RefusedSetting | undefined }) {
  const { base, shape, refused } = props;
  const { indexes } = base.settings;
  const mine = refused?.name === setting.name ? refused : undefined;
  const path = `/bases/${base.id}/settings/indexes`;
  const written = mine?.written ?? indexLines(indexes);
  const mayChange = useMay()("POST", path);
  const { hint, more } = explained(setting);
  return (
    <div id="indexes" class="setting rows">
      <div>
        <strong>{setting.label}</strong>
        <div>
          <p class="hint">{hint}</p>
          <More about={setting.label}>{more}</More>
        </div>
      </div>
      {indexes.length > 0 ? (
        <ul class="index-list">
          {indexes.map((one) => {
            const line = indexLines([one]);
            return (
              <li key={line}>
                <code class="wrap">{line}</code>
                <Form action={path} values={{ remove: line }}>
                  <Button kind="quiet" isSmall>
                    Remove<span class="visually-hidden"> the index {line}</span>
                  </Button>
                </Form>
              </li>
            );
          })}
        </ul>
      ) : null}
      {shape[0] && mayChange ? (
        <Form action={path} class="index-choice needs-script">
          <div
            hx-get={`${path}/columns`}
            hx-trigger="change from:#index-table"
            hx-include="#index-table"
            hx-target="#index-column-field"
            hx-swap="outerHTML"
          >
            <SelectField
              label="Table"
              name="table"
              id="index-table"
              options={shape.map(({ name }) => ({ value: name, text: name }))}
            />
          </div>
          <IndexColumns table={shape[0]} />
          <SelectField
            label="Kind"
            name="kind"
            id="index-kind"
            options={[
              { value: "", text: "Usual" },
              { value: "trigram", text: "Trigram" },
            ]}
          />
          <Button>Add index</Button>
        </Form>
      ) : null}
      <details open={mine !== undefined}>
        <summary>Indexed columns as text</summary>
        <Form action={path} class="setting">
          <TextAreaField
            label="One per line: table.column, or table.column trigram"
            name="value"
            id="indexes-text"
            value={written}
            error={mine?.error}
            disabled={!mayChange}
            spellcheck={false}
            rows={Math.min(MOST_ROWS, Math.max(3, written.split("\n").length + 1))}
            placeholder="projects.status"
          />
          <Button>
            Save<span class="visually-hidden"> the indexed columns</span>
          </Button>
        </Form>
      </details>
    </div>
  );
}

/** Replaced when another table is chosen. */
export function IndexColumns({ table }: { table: TableSpec }) {
  const names = [...table.columns.map(({ name }) => name), "created_time"];
  return (
    <div id="index-column-field">
      <SelectField
        label="Column"
        name="column"
        id="index-column"
        options={names.map((name) => ({ value: name, text: name }))}
      />
    </div>
  );
}
