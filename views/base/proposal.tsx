/** A proposal as the person who decides sees it: each record, field by field, as Airtable has it now and as it would be. */
import type { CellValues, ChangeSet, OperationKind } from "../../core/control/change-sets";
import { Badge, Button, ErrorNote, Field, Form, Note, Time, useMay } from "../components";
import { counted } from "../format";

export interface Review {
  items: ReviewedItem[];
  /** Says which values of stale records the reviewer has seen; undefined: no record is stale. */
  seen: string | undefined;
  /** Why the records could not be read. */
  problem: string | undefined;
}

export interface ReviewedItem {
  position: number;
  operation: OperationKind;
  recordId: string | null;
  /** The source's name. */
  table: string;
  /** What people call the record. */
  title: string | undefined;
  isGone: boolean;
  /** A cell has changed since the proposal. */
  isStale: boolean;
  /** What the record has now of what the proposal relies on. */
  now: CellValues;
  cells: ReviewedCell[];
  /** What the record has besides. */
  others: { name: string; value: unknown }[];
}

interface ReviewedCell {
  name: string;
  /** As the source has it now, or, if that is not known, when it was proposed. */
  before: unknown;
  /** Undefined: it stays. */
  after: { value: unknown } | undefined;
  /** What it was when it was proposed, if that has changed. */
  proposedFrom: { value: unknown } | undefined;
}

interface Props {
  path: string;
  set: ChangeSet;
  review: Review;
  error: string | undefined;
}

export const operationWords = { create: "Create", update: "Change", delete: "Delete" } as const;

/** How many operations a set has. */
export const operationsOf = ({ counts }: ChangeSet) =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

/** The name of the checkbox of an operation. */
export function itemInput(position: number): string {
  return `operation-${position}`;
}

export function Proposal({ path, set, review, error }: Props) {
  const { items, seen, problem } = review;
  const gone = items.filter((item) => item.isGone).length;
  const stale = items.filter((item) => item.isStale && !item.isGone).length;
  const all = operationsOf(set);
  const mayDecide = useMay()("POST", `${path}/approve`);
  const possible = all - gone;
  const hasChoice = mayDecide && (all > 1 || stale > 0);
  const list = (
    <ol class="changes">
      {items.map((item) => (
        <Item key={item.position} item={item} hasChoice={hasChoice} />
      ))}
    </ol>
  );
  return (
    <>
      <p class="muted">
        Nothing changes in Airtable before it is approved{" "}
        <span class="nowrap">
          (until <Time at={set.expiresAt} form="minute" />)
        </span>
        . {mayDecide ? null : "An editor or the owner of the account decides."}
      </p>
      {error ? <ErrorNote>{error}</ErrorNote> : null}
      {problem ? (
        <Note tone="warn">
          Airtable could not be asked what the records have now ({problem}). You see what they had when it was
          proposed. A record that has changed since is left as it is.
        </Note>
      ) : null}
      {gone > 0 ? (
        <Note tone="warn">
          {counted(gone, "operation")} cannot be made, because{" "}
          {gone === 1 ? "its record is" : "their records are"} gone.
        </Note>
      ) : null}
      {stale > 0 ? (
        <Note tone="warn">
          {stale === 1
            ? "1 record changed in Airtable after this was proposed. It is left as it is"
            : `${stale} records changed in Airtable after this was proposed. They are left as they are`}
          {hasChoice ? `, unless you check ${stale === 1 ? "it" : "them"}.` : "."}
        </Note>
      ) : null}
      {mayDecide && possible > 0 ? (
        <Form action={`${path}/approve`}>
          {hasChoice && seen ? <input type="hidden" name="seen" value={seen} /> : null}
          {list}
          {hasChoice ? (
            <Button kind="primary" name="only" value="checked">
              Approve checked
            </Button>
          ) : (
            <Button kind="primary">Approve {counted(possible, "operation")}</Button>
          )}
        </Form>
      ) : (
        list
      )}
      <Form action={`${path}/reject`} class="stack rows">
        <Field
          label="Reason"
          name="reason"
          hint={set.agentId ? "The agent reads it." : "The author reads it."}
          maxLength={1000}
        />
        <Button>Reject</Button>
      </Form>
    </>
  );
}

function Item({ item, hasChoice }: { item: ReviewedItem; hasChoice: boolean }) {
  const { position, operation, recordId, table, title, isGone, isStale, cells, others } = item;
  const input = itemInput(position);
  const what = (
    <>
      <b>
        {operationWords[operation]}{" "}
        {title === undefined ? <bdi>{recordId ?? "a new record"}</bdi> : <bdi>“{title}”</bdi>}
      </b>{" "}
      <span class="muted">
        in <bdi>{table}</bdi>
      </span>
    </>
  );
  return (
    <li>
      {hasChoice ? (
        <>
          <input type="checkbox" id={input} name={input} checked={!isGone && !isStale} disabled={isGone} />{" "}
          <label for={input}>{what}</label>
        </>
      ) : (
        what
      )}{" "}
      {isGone ? <Badge tone="red">The record is gone</Badge> : null}
      {isStale ? <Badge tone="red">Changed since</Badge> : null}
      <ul class="changed">
        {cells.map((cell) => (
          <Cell key={cell.name} cell={cell} operation={operation} />
        ))}
      </ul>
      {others.length === 0 ? null : (
        <details class="more">
          <summary>
            {counted(others.length, "other field")}
            <span class="visually-hidden"> of {title ?? recordId}</span>
          </summary>
          <ul class="changed">
            {others.map(({ name, value }) => (
              <li key={name} class="muted">
                <b>{name}</b> {operation === "delete" ? <del>{cellText(value)}</del> : cellText(value)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

function Cell({ cell, operation }: { cell: ReviewedCell; operation: OperationKind }) {
  const { name, before, after, proposedFrom } = cell;
  const goes = after !== undefined || operation === "delete";
  return (
    <li class={goes ? undefined : "muted"}>
      <b>{name}</b> {operation === "create" ? null : goes ? <del>{cellText(before)}</del> : cellText(before)}
      {after ? (
        <>
          {operation === "create" ? "" : " → "}
          <ins>{cellText(after.value)}</ins>
        </>
      ) : null}
      {proposedFrom ? <strong> (it was {cellText(proposedFrom.value)} when this was proposed)</strong> : null}
    </li>
  );
}

/** In full: a text that is cut could carry data out unseen. */
export function cellText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "(empty)";
  if (value === true) return "checked";
  if (Array.isArray(value) && value.length === 0) return "(empty)";
  return typeof value === "string" ? value : JSON.stringify(value);
}
