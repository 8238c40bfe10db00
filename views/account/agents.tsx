/** The account's agents: a table, and the form for a new one. */
import type { Agent } from "../../core/control/agents";
import {
  Ago,
  Badge,
  Card,
  Empty,
  FieldsForm,
  FormPanel,
  type FormState,
  hasErrors,
  Table,
} from "../components";

export function Agents({ agents, form, now }: { agents: Agent[]; form: FormState; now: Date }) {
  return (
    <Card id="agents" title="Agents">
      <FormPanel id="new" action="/account/agents" button="New agent" isOpen={hasErrors(form)}>
        <FieldsForm action="/account/agents" button="Create agent" form={form} isPrimary />
      </FormPanel>
      <p class="muted">
        AI clients that read your bases by SQL, at no cost in calls to Airtable, and may propose changes that
        a member approves. <a href="/docs/agents">How it works</a>
      </p>
      <Table
        caption="Agents"
        rows={agents}
        empty={<Empty title="No agents yet">No AI client can read anything until you create one.</Empty>}
        columns={(column) => [
          column({ text: "Name", isHead: true, class: "wrap" }, (agent) => (
            <>
              <a href={`/account/agents/${agent.id}`}>{agent.name}</a>{" "}
              {agent.hasToken ? null : <Badge tone="yellow">No token</Badge>}
            </>
          )),
          column(
            { text: "Reads", class: "wrap" },
            (agent) => agent.bases.map(({ name }) => name).join(", ") || "Nothing",
          ),
          column({ text: "Changes", class: "wrap" }, (agent) => changesOf(agent)),
          column({ text: "Last used", class: "nowrap" }, (agent) =>
            agent.lastUsedAt ? <Ago at={agent.lastUsedAt} now={now} /> : "never",
          ),
          column({ text: "Created", class: "nowrap" }, (agent) => <Ago at={agent.createdAt} now={now} />),
        ]}
      />
    </Card>
  );
}

function changesOf({ mayPropose, rules }: Agent): string {
  if (!mayPropose) return "Nothing";
  return rules.length === 0 ? "What a member approves" : "What a member or a rule approves";
}
