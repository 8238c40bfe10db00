/** The change sets of a base, and one of them: what it changes, the result of each operation, and what can be decided. */
import type { Base } from "../../core/control/bases";
import type {
  ChangeItem,
  ChangeSet,
  ChangeSetState,
  Decision,
  ItemState,
  ListedWrite,
} from "../../core/control/change-sets";
import {
  Ago,
  BackLink,
  Badge,
  Button,
  ButtonLink,
  Card,
  Empty,
  ErrorNote,
  Form,
  Table,
  type Tone,
} from "../components";
import { recordPath } from "../data/paths";
import { counted, inDigits } from "../format";
import { cellText, operationsOf, operationWords, Proposal, type Review } from "./proposal";

const setWords: Record<ChangeSetState, [word: string, tone: Tone]> = {
  proposed: ["Waits for approval", "yellow"],
  approved: ["Waits", "neutral"],
  running: ["Running", "neutral"],
  applied: ["Applied", "green"],
  partly: ["Partly applied", "yellow"],
  failed: ["Not applied", "red"],
  rejected: ["Rejected", "neutral"],
  canceled: ["Canceled", "neutral"],
  expired: ["Expired", "neutral"],
};

const itemWords: Record<ListedWrite["state"], [word: string, tone: Tone]> = {
  queued: ["Queued", "neutral"],
  waiting: ["Waits", "neutral"],
  sent: ["Sent", "neutral"],
  applied: ["Applied", "green"],
  refused: ["Refused", "red"],
  unknown: ["Unknown", "yellow"],
  not_applied: ["Not applied", "neutral"],
};

export const changesPath = (base: Pick<Base, "id">) => `/bases/${base.id}/changes`;

export function ChangeSetsPage({ base, sets, now }: { base: Base; sets: ChangeSet[]; now: Date }) {
  return (
    <Card id="change-sets" title="Change sets">
      <p class="muted">
        Changes of many records at once, which Basetide makes in Airtable with the key of this base.
        {sets.length === 0 ? null : (
          <>
            {" "}
            <a href="/docs/change-sets">How to make one</a>
          </>
        )}
      </p>
      <Table
        caption="Change sets, newest first"
        rows={sets}
        empty={<NoChangeSets base={base} />}
        columns={(column) => [
          column({ text: "Change set", isHead: true, class: "wrap" }, (set) => (
            <a href={`${changesPath(base)}/${set.id}`}>{set.note || set.id}</a>
          )),
          column("State", (set) => <SetState state={set.state} />),
          column({ text: "Operations", isNumber: true }, (set) => inDigits(operationsOf(set))),
          column({ text: "Applied", isNumber: true }, (set) => inDigits(set.counts.applied ?? 0)),
          column({ text: "By", class: "wrap" }, (set) => set.createdBy ?? "–"),
          column({ text: "Created", class: "nowrap" }, (set) => <Ago at={set.createdAt} now={now} />),
        ]}
      />
    </Card>
  );
}

function NoChangeSets({ base: { id, settings } }: { base: Base }) {
  return settings.changeSets ? (
    <Empty
      title="No change set yet"
      action={<ButtonLink href="/docs/change-sets">How to make one</ButtonLink>}
    >
      Programs make them with the API of the console.
    </Empty>
  ) : (
    <Empty
      title="Change sets are off"
      action={<ButtonLink href={`/bases/${id}/settings`}>Settings of this base</ButtonLink>}
    >
      Turn them on in the settings, under Proxy.
    </Empty>
  );
}

interface OneProps {
  base: Base;
  set: ChangeSet;
  items: ChangeItem[];
  /** Position of the first operation of the next page. */
  next: number | null;
  /** Of a proposal: what it would change now. */
  review: Review | undefined;
  /** What is wrong with the decision that was sent. */
  error: string | undefined;
  now: Date;
}

export function ChangeSetPage({ base, set, items, next, review, error, now }: OneProps) {
  const path = `${changesPath(base)}/${set.id}`;
  return (
    <Card id="change-set" title={set.note || "Change set"} actions={<Decisions path={path} set={set} />}>
      <BackLink href={changesPath(base)}>Change sets</BackLink>
      <p>
        <SetState state={set.state} /> {counted(operationsOf(set), "operation")} by{" "}
        {set.agentId ? (
          <a href={`/account/agents/${set.agentId}`}>{set.createdBy}</a>
        ) : (
          (set.createdBy ?? "Basetide")
        )}
        , <Ago at={set.createdAt} now={now} />
        {set.decidedBy && set.decidedBy !== set.createdBy ? <>, decided by {set.decidedBy}</> : null}.{" "}
        {set.state === "proposed"
          ? null
          : Object.entries(set.counts)
              .map(([state, count]) => `${itemWords[state as ItemState][0]}: ${inDigits(count)}`)
              .join(" · ")}{" "}
        {set.state === "approved" || set.state === "running" ? <a href={path}>Reload</a> : null}
      </p>
      {set.undoes ? (
        <p>
          It undoes <a href={`${changesPath(base)}/${set.undoes}`}>another change set</a>.
        </p>
      ) : null}
      {set.problem ? <p class="muted">It waits: {set.problem}</p> : null}
      {set.reason ? <p>Reason: {set.reason}</p> : null}
      {error && !review ? <ErrorNote>{error}</ErrorNote> : null}
      {review ? <Proposal {...{ path, set, review, error }} /> : <Operations {...{ base, items }} />}
      {next === null ? null : <a href={`${path}?from=${next}`}>Next operations</a>}
    </Card>
  );
}

function Operations({ base, items }: Pick<OneProps, "base" | "items">) {
  return (
    <Table
      caption="Operations, in their order"
      rows={items}
      columns={(column) => [
        column(
          { text: "Operation", isHead: true, class: "nowrap" },
          (item) => operationWords[item.operation],
        ),
        column({ text: "Table", class: "wrap" }, (item) => (
          <>
            <bdi>{item.table}</bdi> <RecordLink base={base} item={item} />
          </>
        )),
        column({ text: "Cells", class: "wrap" }, (item) => <CellChanges item={item} />),
        column({ text: "Result", class: "wrap" }, (item) => <ItemResult {...item} />),
      ]}
    />
  );
}

/** What became of an operation. */
export function ItemResult({ state, error, errorType }: Pick<ListedWrite, "state" | "error" | "errorType">) {
  const [word, tone] = itemWords[state];
  return (
    <>
      <Badge tone={tone}>{word}</Badge>
      {error ? (
        <p class="small muted">
          {error} {errorType ? <code>{errorType}</code> : null}
        </p>
      ) : null}
    </>
  );
}

/** To the record in the data browser, if its table is copied. */
function RecordLink({ base, item: { table, recordId } }: { base: Base; item: ChangeItem }) {
  if (!recordId) return null;
  const id = <code>{recordId}</code>;
  const copied = base.tables.find((one) => one.source_name === table || one.source_id === table);
  return copied ? <a href={recordPath(base.id, copied.name, recordId)}>{id}</a> : id;
}

/** Each cell as `Status: Open → Done`, as far as the author has said what was there. */
function CellChanges({ item: { fields, expected } }: { item: ChangeItem }) {
  const names = [...new Set([...Object.keys(fields ?? {}), ...Object.keys(expected ?? {})])];
  if (names.length === 0) return <span class="muted">–</span>;
  return (
    <ul class="changed">
      {names.map((name) => (
        <li key={name}>
          <b>{name}</b>{" "}
          {expected && name in expected ? (
            <>
              <del>{cellText(expected[name])}</del> →{" "}
            </>
          ) : null}
          {fields && name in fields ? <ins>{cellText(fields[name])}</ins> : null}
        </li>
      ))}
    </ul>
  );
}

function Decisions({ path, set }: { path: string; set: ChangeSet }) {
  const offered: Record<Decision | "undo", string | false> = {
    // The review has their buttons.
    approve: false,
    reject: false,
    cancel: (set.state === "approved" || set.state === "running") && "Cancel",
    undo: set.endedAt !== null && (set.counts.applied ?? 0) > 0 && "Undo",
  };
  return (
    <>
      {Object.entries(offered).map(([decision, text]) =>
        text ? (
          <Form key={decision} action={`${path}/${decision}`}>
            <Button>{text}</Button>
          </Form>
        ) : null,
      )}
    </>
  );
}

export function SetState({ state }: { state: ChangeSetState }) {
  const [word, tone] = setWords[state];
  return <Badge tone={tone}>{word}</Badge>;
}
