/** Asks a member whether a client may act as an agent, and says who asks and what it could then do. */
import type { Agent } from "../../core/control/agents";
import { Button, ErrorNote, Field, Form, Note, PageHead, Toggle } from "../components";
import { counted } from "../format";

/** Where the browser is sent with the answer. */
export interface RedirectTarget {
  kind: "site" | "loopback" | "app";
  /** Its host, or the scheme that opens the app. */
  text: string;
}

interface ConnectClientProps {
  /** As the client calls itself. */
  name: string;
  /** Of the document that describes it. */
  clientHost: string;
  redirect: RedirectTarget;
  asksToPropose: boolean;
  /** The request, signed. */
  query: string;
  /** E-mail address of the account. */
  account: string;
  agents: (Agent & { roles: string[] })[];
  bases: { id: string; name: string }[];
  /** What the form begins with. */
  chosen: { agent: string; name: string; bases: string[]; mayPropose: boolean };
  error: string | undefined;
}

export function ConnectClient(props: ConnectClientProps) {
  const { name, clientHost, asksToPropose, query, account, agents, chosen, error } = props;
  return (
    <>
      <PageHead
        title={`Connect ${name}?`}
        lead={`It wants to work with bases of ${account} as one of your agents.`}
      />
      <Form action="/oauth2/authorize" class="stack">
        {error ? <ErrorNote title="Not connected">{error}</ErrorNote> : null}
        <input type="hidden" name="query" value={query} />
        <section class="card" aria-labelledby="who-heading">
          <h2 id="who-heading">Who asks</h2>
          <p class="wrap">
            A program that calls itself{" "}
            <strong>
              <bdi>{name}</bdi>
            </strong>
            , described by <strong>{clientHost}</strong>.
          </p>
          <Target {...props} />
        </section>
        <section class="card" aria-labelledby="agent-heading">
          <h2 id="agent-heading">What it may read</h2>
          <p class="muted">
            It reads with SQL, as the agent's own SQL user, the live copy of the bases. It costs no calls to
            Airtable.
          </p>
          <fieldset class="choices">
            <legend class="visually-hidden">Agent</legend>
            {agents.map((agent) => (
              <AgentChoice key={agent.id} agent={agent} isChosen={agent.id === chosen.agent} />
            ))}
            <NewAgent {...props} />
          </fieldset>
        </section>
        <section class="card" aria-labelledby="do-heading">
          <h2 id="do-heading">What it may do</h2>
          {asksToPropose ? (
            <Toggle
              name="propose"
              label="Propose changes"
              checked={chosen.mayPropose}
              hint="Its proposals wait in Basetide until a member approves them, unless an owner has made a rule for the agent."
            />
          ) : (
            <p>It asks to read only. It cannot propose or change anything.</p>
          )}
          <p class="muted">
            You can disconnect it at any time under Agents, Connected programs. Its access then ends at once.
          </p>
        </section>
        <div class="actions">
          <Button kind="primary" name="decision" value="allow">
            Connect
          </Button>
          <Button name="decision" value="refuse" formNoValidate>
            Cancel
          </Button>
        </div>
      </Form>
    </>
  );
}

function Target({ name, clientHost, redirect: { kind, text } }: ConnectClientProps) {
  if (kind === "site" && text === clientHost)
    return (
      <p>
        You return to <strong>{text}</strong>.
      </p>
    );
  if (kind === "site")
    return (
      <Note tone="warn" title={`You return to ${text}`}>
        That is another site than the one that describes the program. Connect only if you know it.
      </Note>
    );
  const where =
    kind === "loopback" ? `a program on your computer (${text})` : `an app that opens ${text} links`;
  return (
    <Note tone="warn" title={`You return to ${where}`}>
      Any program there can claim to be <bdi>{name}</bdi>. Connect only if you have just started this
      yourself.
    </Note>
  );
}

function AgentChoice({
  agent,
  isChosen,
}: {
  agent: ConnectClientProps["agents"][number];
  isChosen: boolean;
}) {
  const id = `agent-${agent.id}`;
  return (
    <div class="choice">
      <input type="radio" name="agent" id={id} value={agent.id} checked={isChosen} required />
      <label for={id}>
        <span class="choice-name">
          <bdi>{agent.name}</bdi>
        </span>
        {agent.bases.map((base) => (
          <span key={base.baseId} class="muted small wrap">
            <bdi>{base.name}</bdi>: {readsOf(base)}
          </span>
        ))}
        <span class="muted small wrap">
          {agent.mayPropose ? "May propose changes" : "May not propose changes"}
          {agent.roles.length > 0 ? `. SQL user ${agent.roles.join(", ")}` : ""}
        </span>
      </label>
    </div>
  );
}

function readsOf({ tables, hidden, hasPrivate }: Agent["bases"][number]): string {
  return [
    tables === null ? "all tables" : counted(tables.length, "table"),
    hasPrivate
      ? "with people, e-mail, phone and attachments"
      : "without people, e-mail, phone and attachments",
    ...(hidden.length > 0 ? [`without ${counted(hidden.length, "more field")}`] : []),
  ].join(", ");
}

function NewAgent({ bases, chosen }: ConnectClientProps) {
  return (
    <div class="choice">
      <input type="radio" name="agent" id="agent-new" value="new" checked={chosen.agent === "new"} required />
      <label for="agent-new">
        <span class="choice-name">A new agent</span>
        <span class="muted small">All tables, without people, e-mail, phone and attachments</span>
      </label>
      <div class="choice-more stack">
        <Field label="Name of the agent" name="name" value={chosen.name} maxLength={60} />
        <fieldset>
          <legend>Bases</legend>
          {bases.map(({ id, name: base }) => (
            <label key={id}>
              <input type="checkbox" name="base" value={id} checked={chosen.bases.includes(id)} />{" "}
              <bdi>{base}</bdi>
            </label>
          ))}
        </fieldset>
      </div>
    </div>
  );
}
