/** One record: all its fields, the values that did not fit, and its recorded changes. A side panel, or a page. */

import type { Base } from "../../core/control/bases";
import { cutText } from "../../core/cut-text";
import type { BrowsedRecord, RecordChange } from "../../core/data-browser";
import { factsOf } from "../../core/source";
import { BackLink, NewTabLink, Time } from "../components";
import { FieldIcon } from "../components/field-type";
import { plainValue } from "../plain-value";
import { CellValue } from "./cell";
import { tablePath } from "./paths";

/** Changed values are clipped; the table _sync_history has them whole. */
const SHOWN_CHARACTERS = 200;

interface RecordProps {
  base: Base;
  record: BrowsedRecord;
}

/**
 * The content of the side panel.
 *
 * @param props.closed where the page is without it; absent: only the script closes it
 */
export function RecordPanel({ base, record, closed }: RecordProps & { closed?: string }) {
  return (
    <>
      <PanelHead title={titleOf(record)} closed={closed} />
      <RecordFields base={base} record={record} />
    </>
  );
}

/** In place of a record that is gone. */
export function NoRecord({ message, closed }: { message: string; closed: string }) {
  return (
    <>
      <PanelHead title="No record" closed={closed} />
      <p>{message}.</p>
    </>
  );
}

function PanelHead({ title, closed }: { title: string; closed: string | undefined }) {
  return (
    <div class="dialog-head">
      <h2 id="record-title">{title}</h2>
      <button
        type="button"
        class="button quiet small needs-script"
        popovertarget="record"
        popovertargetaction="hide"
        autofocus
      >
        Close
      </button>
      {closed === undefined ? null : (
        <a class="button quiet small needs-no-script" href={closed}>
          Close
        </a>
      )}
    </div>
  );
}

export function RecordView({ base, record }: RecordProps) {
  const { table } = record;
  return (
    <section class="card record-page" aria-labelledby="record-title">
      <BackLink href={tablePath(base.id, table.name)}>{table.sourceName}</BackLink>
      <h2 id="record-title">{titleOf(record)}</h2>
      <RecordFields base={base} record={record} />
    </section>
  );
}

/** The text of the primary field, or the record's id. */
export function titleOf({ table, cells, id }: BrowsedRecord): string {
  const cell = cells[table.columns.indexOf(table.primary)] ?? null;
  if (table.primary.link || typeof cell === "object") return id;
  return cutText(String(cell), 200).trim() || id;
}

function RecordFields({ base, record }: RecordProps) {
  const { table, cells, issues, linked, id, changes } = record;
  const fields = table.columns.map((column, index) => ({ column, cell: cells[index]! }));
  const [own, ours] = [
    fields.filter(({ column }) => column.fieldId !== undefined),
    fields.filter(({ column }) => column.fieldId === undefined),
  ];
  return (
    <div class="record" hx-target:inherited="#record" data-record={`${table.name}/${id}`}>
      {table.tableId === undefined ? null : (
        <NewTabLink
          class="button plain small"
          href={factsOf(base.platform).recordUrl(base.sourceBaseId, table.tableId, id)}
        >
          Open in Airtable
        </NewTabLink>
      )}
      {issues.length === 0 ? null : (
        <div class="note warn">
          <p class="note-title">Values that do not fit their column</p>
          {issues.map(({ column, value, reason }) => (
            <p key={column}>
              <code>{column}</code>: {reason}. In Airtable: <code>{plainValue(value)}</code>
            </p>
          ))}
        </div>
      )}
      <dl class="record-fields">
        {[...own, ...ours].map(({ column, cell }) => (
          <div key={column.name} data-column={column.name}>
            <dt>
              <FieldIcon type={column.display?.type ?? column.shownAs} />
              <bdi>{column.sourceName}</bdi> <code class="muted">{column.name}</code>
              {column.description ? <p class="muted pre-line">{column.description}</p> : null}
            </dt>
            <dd>
              <CellValue
                isWhole
                baseId={base.id}
                record={{ tableId: table.tableId, id }}
                linked={linked}
                column={column}
                cell={cell}
              />
            </dd>
          </div>
        ))}
      </dl>
      {changes === undefined ? (
        <p class="muted small">
          Changes are not recorded. Turn on <a href={`/bases/${base.id}/settings#history`}>History</a> to see
          them here.
        </p>
      ) : (
        <Changes changes={changes} />
      )}
    </div>
  );
}

function Changes({ changes }: { changes: RecordChange[] }) {
  return (
    <section aria-labelledby="changes-title">
      <h3 id="changes-title">Changes</h3>
      {changes.length === 0 ? <p class="muted">None since changes are recorded.</p> : null}
      <ol class="changes">
        {changes.map((change) => (
          <li key={change.seenAt.toISOString() + change.operation}>
            <p class="muted small">
              <Time at={change.seenAt} />
              {`, ${OPERATIONS[change.operation]} ${change.by === "proxy" ? "through the proxy" : "in Airtable"}`}
            </p>
            {change.operation === "update" ? <Changed change={change} /> : null}
          </li>
        ))}
      </ol>
    </section>
  );
}

const OPERATIONS = { insert: "created", update: "changed", delete: "deleted" };

function Changed({ change: { old, new: now } }: { change: RecordChange }) {
  if (!now) return <p class="muted">Too large to show: see _sync_history.</p>;
  return (
    <ul class="changed">
      {Object.keys(now).map((column) => (
        <li key={column}>
          <code>{column}</code> <del>{shown(old?.[column])}</del> → <ins>{shown(now[column])}</ins>
        </li>
      ))}
    </ul>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined || value === "") return "empty";
  const text = Array.isArray(value) ? value.join(", ") : String(value);
  return text.length > SHOWN_CHARACTERS ? `${cutText(text, SHOWN_CHARACTERS)}…` : text;
}
