/** The audit log of the account, newest first, filtered by kind, person and base. */

import type { AuditActor, AuditEntry, AuditKind } from "../../core/control/audit";
import { Ago, ButtonLink, Card, Empty, SelectField, Table } from "../components";
import { detailsOf, type Subjects, What } from "./activity-entry";
import { AccountFrame } from "./frame";

/** The filter, as in the page's address. */
export interface ActivityChoice {
  kind: string;
  who: string;
  base: string;
}

interface EntriesProps {
  entries: AuditEntry[];
  subjects: Subjects;
  isFiltered: boolean;
  /** Path of the page with older entries. */
  older: string | undefined;
  now: Date;
}

interface ActivityProps extends EntriesProps {
  choice: ActivityChoice;
  actors: AuditActor[];
  bases: { id: string; name: string }[];
}

const kindNames: Record<AuditKind, string> = {
  bases: "Bases",
  access: "Database access",
  people: "People and sign-ins",
  tokens: "API tokens",
  alerts: "Alerts and status page",
  budgets: "Workspaces",
  operator: "Operator",
};

export function Activity(props: ActivityProps) {
  return (
    <AccountFrame tab="/account/activity">
      <Card id="activity" title="Activity">
        <p class="muted">Entries are kept for 400 days.</p>
        <Choice {...props} />
        <ActivityEntries {...props} />
      </Card>
    </AccountFrame>
  );
}

function Choice({ choice, actors, bases }: ActivityProps) {
  const all = (text: string) => ({ value: "", text });
  return (
    <search>
      <form
        method="get"
        action="/account/activity"
        class="search list-choice"
        hx-get="/account/activity"
        hx-trigger="change"
        hx-target="#entries"
        hx-swap="outerMorph"
      >
        <SelectField
          label="Kind"
          name="kind"
          value={choice.kind}
          options={[all("All"), ...Object.entries(kindNames).map(([value, text]) => ({ value, text }))]}
        />
        <SelectField
          label="Person"
          name="who"
          value={choice.who}
          options={[
            all("Everyone"),
            ...actors.map((actor) => ({ value: whoOf(actor), text: nameOf(actor) })),
          ]}
        />
        <SelectField
          label="Base"
          name="base"
          value={choice.base}
          options={[all("All bases"), ...bases.map(({ id, name }) => ({ value: id, text: name }))]}
        />
        <button type="submit" class="button needs-no-script">
          Filter
        </button>
      </form>
    </search>
  );
}

export function ActivityEntries({ entries, subjects, isFiltered, older, now }: EntriesProps) {
  return (
    <div id="entries" class="stack">
      <Table
        caption="Activity"
        rows={entries}
        empty={
          <Empty title={isFiltered ? "No entry matches" : "Nothing yet"}>
            {isFiltered
              ? "Choose another kind, person or base."
              : "Connected bases, changed settings, invitations and other changes are listed here."}
          </Empty>
        }
        columns={(column) => [
          column({ text: "When", class: "nowrap" }, ({ at }) => <Ago at={at} now={now} />),
          column({ text: "Who", class: "wrap" }, (entry) => <Who entry={entry} />),
          column({ text: "What", isHead: true, class: "wrap" }, (entry) => (
            <What entry={entry} subjects={subjects} />
          )),
          column({ text: "Details", class: "wrap" }, (entry) => {
            const details = detailsOf(entry, subjects);
            return details === "" ? null : <bdi>{details}</bdi>;
          }),
        ]}
      />
      {older ? (
        <ButtonLink href={older} kind="quiet">
          Older
        </ButtonLink>
      ) : null}
    </div>
  );
}

/** The names of the service's operators are not shown to customers. */
function Who({ entry: { actorKind, actor } }: { entry: AuditEntry }) {
  if (actorKind === "user") return <bdi>{actor}</bdi>;
  if (actorKind === "token") {
    return (
      <>
        API token <bdi>{actor}</bdi>
      </>
    );
  }
  return <>{actorKind === "system" ? "Basetide" : "Operator"}</>;
}

/** The value of an actor in the page's address: `user:ada@example.org`. */
export function whoOf(actor: AuditActor): string {
  return "name" in actor ? `${actor.kind}:${actor.name}` : actor.kind;
}

function nameOf(actor: AuditActor): string {
  if (actor.kind === "user") return actor.name;
  if (actor.kind === "token") return `API token ${actor.name}`;
  return actor.kind === "system" ? "Basetide" : "Operator";
}
