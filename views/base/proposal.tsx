/** A proposal as the person who decides sees it: each record, field by field, as Airtable has it now and as it would be. */
import type { ChangeSet, OperationKind } from "../../core/control/change-sets";
import { Badge, Button, ErrorNote, Field, Form, Note } from "../components";
import { counted } from "../format";

export interface Review {
  items: ReviewedItem[];
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
  cells: ReviewedCell[];
}

interface ReviewedCell {
  name: string;
  /** As the source has it now, or, if that is not known, when it was proposed. */
  before: unknown;
  /** Undefined: it stays. */
  after: { value: unknown } | undefined;
  isStale: boolean;
}

interface Props {
  path: string;
  set: ChangeSet;
  review: Review;
  error: string | undefined;
  /** All operations are on this page. */
  isWhole: boolean;
}

const verbs = { create: "Create", update: "Change", delete: "Delete" } as const;

/** The name of the checkbox of an operation. */
export function itemInput(position: number): string {
  return `operation-${position}`;
}

export function Proposal({ path, set, review, error, isWhole }: Props) {
  const blocked = review.items.filter((item) => item.isStale || item.isGone).length;
  const all = Object.values(set.counts).reduce((sum, count) => sum + count, 0);
  const hasChoice = isWhole && all > 1;
  return (
    <>
      {error ? <ErrorNote>{error}</ErrorNote> : null}
      {review.problem ? (
        <Note tone="warn">
          Airtable could not be asked what the records have now ({review.problem}). You see what they had when it
          was proposed. A record that has changed since is left as it is.
        </Note>
      ) : null}
      {blocked > 0 ? (
        <Note tone="warn">
          {counted(blocked, "operation")} cannot be made, because a record has changed since, or is gone. It is
          left as it is.
        </Note>
      ) : null}
      <Form action={`${path}/approve`}>
        <ol class="changes">
          {review.items.map((item) => (
            <Item key={item.position} item={item} hasChoice={hasChoice} />
          ))}
        </ol>
        {hasChoice ? (
          <Button kind="primary" name="only" value="checked">
            Approve checked
          </Button>
        ) : (
          <Button kind="primary">Approve {counted(all, "operation")}</Button>
        )}
      </Form>
      <Form action={`${path}/reject`} class="stack rows">
        <Field label="Reason" name="reason" hint="The author reads it." maxLength={1000} autocomplete="off" />
        <Button>Reject</Button>
      </Form>
    </>
  );
}

function Item({ item, hasChoice }: { item: ReviewedItem; hasChoice: boolean }) {
  const { position, operation, recordId, table, title, isGone, isStale, cells } = item;
  const isPossible = !isGone && !isStale;
  const input = itemInput(position);
  const what = (
    <>
      <b>
        {verbs[operation]} <bdi>{title ?? recordId ?? "a new record"}</bdi>
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
          <input type="checkbox" id={input} name={input} checked={isPossible} disabled={!isPossible} />{" "}
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
    </li>
  );
}

function Cell({ cell: { name, before, after, isStale }, operation }: { cell: ReviewedCell; operation: OperationKind }) {
  const goes = after !== undefined || operation === "delete";
  return (
    <li class={goes ? undefined : "muted"}>
      <b>{name}</b>{" "}
      {operation === "create" ? null : goes ? <del>{cellText(before)}</del> : cellText(before)}
      {after ? (
        <>
          {operation === "create" ? "" : " → "}
          <ins>{cellText(after.value)}</ins>
        </>
      ) : null}
      {isStale ? <strong> changed since it was proposed</strong> : null}
    </li>
  );
}

/** In full: a text that is cut could carry data out unseen. */
function cellText(value: unknown): string {
  if (value === null || value === undefined || value === "") return "(empty)";
  return typeof value === "string" ? value : JSON.stringify(value);
}
