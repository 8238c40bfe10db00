/** One agent: how it connects, what it may read and change, its limits, and its latest calls. */
import type { Agent, AgentCall, AgentRule } from "../../core/control/agents";
import type { Base } from "../../core/control/bases";
import {
  Ago,
  BackLink,
  Badge,
  Button,
  Card,
  CopyField,
  DialogLink,
  Empty,
  ErrorNote,
  Field,
  FieldsForm,
  Form,
  FormPanel,
  type FormState,
  hasErrors,
  Note,
  SelectField,
  Table,
  Toggle,
  typedText,
} from "../components";
import { counted, inDigits } from "../format";

/** What an agent may read of a base, and which rules it has there, by names. */
export interface ShownReads {
  baseId: string;
  name: string;
  /** Its SQL user's role; undefined until it is first needed. */
  role: string | undefined;
  /** The base's setting, without which nothing can be proposed. */
  hasChangeSets: boolean;
  /** Undefined: all. */
  tables: string[] | undefined;
  hidden: string[];
  hasPrivate: boolean;
  rules: (AgentRule & { table: string })[];
}

interface Props {
  agent: Agent;
  reads: ShownReads[];
  /** Bases that it does not read. */
  others: Base[];
  calls: AgentCall[];
  /** The address that the client connects to. */
  url: string;
  /** Just created. */
  token: string | undefined;
  form: FormState;
  /** Rejected. */
  readsForm: FormState | undefined;
  ruleForm: FormState | undefined;
  /** The reader is an owner. */
  mayRule: boolean;
  now: Date;
}

export function AgentPage(props: Props) {
  const { agent, reads, others, calls, url, token, form, readsForm, ruleForm, mayRule, now } = props;
  const path = `/account/agents/${agent.id}`;
  return (
    <>
      <BackLink href="/account/agents">All agents</BackLink>
      {token ? <NewToken url={url} token={token} /> : null}
      <Card
        id="agent"
        title={agent.name}
        actions={
          <DialogLink isSmall href={`${path}/token`}>
            New token
          </DialogLink>
        }
      >
        <p>
          {agent.hasToken ? "It connects to" : "Once it has a token, it connects to"}{" "}
          <code class="wrap">{url}</code>. Created by {agent.createdBy},{" "}
          <Ago at={agent.createdAt} now={now} />
          {agent.lastUsedAt ? (
            <>
              ; last used <Ago at={agent.lastUsedAt} now={now} />
            </>
          ) : null}
          .
        </p>
        <p>
          {agent.mayPropose ? (
            <>
              It may propose changes; <a href="/account/proposals">a member decides</a>.
            </>
          ) : (
            "It reads, and may not propose changes."
          )}
        </p>
      </Card>
      <Card id="reads" title="What it may read">
        {reads.map((one) => (
          <Reads
            key={one.baseId}
            path={path}
            reads={one}
            form={readsForm && typedText(readsForm, "base") === one.baseId ? readsForm : undefined}
            isOnly={reads.length === 1}
            mayPropose={agent.mayPropose}
          />
        ))}
        {others.length === 0 ? null : (
          <FormPanel id="add-base" action={`${path}/reads`} button="Add a base" isOpen={false}>
            <Form action={`${path}/reads`} class="stack rows">
              <SelectField
                label="Base"
                name="base"
                value=""
                options={others.map(({ id, name, sourceBaseId }) => ({
                  value: id,
                  text: name || sourceBaseId,
                }))}
              />
              <PrivateToggle id="add-private" isOn={false} />
              <Button>Add base</Button>
            </Form>
          </FormPanel>
        )}
      </Card>
      {agent.mayPropose ? <Rules {...{ path, reads, mayRule }} form={ruleForm} /> : null}
      <Card id="change" title="Name and limits">
        <FieldsForm action={path} button="Save" form={form} />
      </Card>
      <Calls agent={agent} calls={calls} now={now} />
      <Card id="end" title="Revoke">
        <p class="muted">Its token stops working at once. Its proposals stay.</p>
        <DialogLink kind="danger" href={`${path}/revoke`}>
          Revoke agent…
        </DialogLink>
      </Card>
    </>
  );
}

function NewToken({ url, token }: { url: string; token: string }) {
  const headers = { Authorization: `Bearer ${token}` };
  const settings = { mcpServers: { basetide: { type: "http", url, headers } } };
  return (
    <Note tone="good" title="Copy the token now. It will not be shown again.">
      <div class="stack">
        <CopyField id="agent-token" label="Token" value={token} />
        <CopyField id="agent-url" label="Address" value={url} />
        <CopyField
          id="agent-claude"
          label="Claude Code"
          value={`claude mcp add --transport http basetide ${url} --header "Authorization: Bearer ${token}"`}
        />
        <CopyField
          id="agent-settings"
          label="Clients with a file of settings (mcp.json)"
          value={JSON.stringify(settings)}
        />
      </div>
    </Note>
  );
}

interface ReadsProps {
  path: string;
  reads: ShownReads;
  form: FormState | undefined;
  isOnly: boolean;
  mayPropose: boolean;
}

function Reads({ path, reads, form, isOnly, mayPropose }: ReadsProps) {
  const { baseId, name, role, tables, hidden, hasPrivate, hasChangeSets } = reads;
  const action = `${path}/reads`;
  const value = (field: string, now: string) => (form ? typedText(form, field) : now);
  const id = (part: string) => `${part}-${baseId}`;
  return (
    <section class="stack" aria-labelledby={id("base")}>
      <h3 id={id("base")}>
        <a href={`/bases/${baseId}`}>
          <bdi>{name}</bdi>
        </a>
      </h3>
      <dl class="facts">
        <dt>Tables</dt>
        <dd>{tables ? tables.join(", ") : "All, also those that are added later"}</dd>
        <dt>Left out</dt>
        <dd>
          {[...(hasPrivate ? [] : ["fields with personal data and files"]), ...hidden].join(", ") ||
            "Nothing"}
        </dd>
        <dt>SQL user</dt>
        <dd>{role ? <code>{role}</code> : "Made with its first call"}</dd>
      </dl>
      {mayPropose && !hasChangeSets ? (
        <Note tone="warn">
          It can propose nothing here: the setting{" "}
          <a href={`/bases/${baseId}/settings#change_sets`}>Change sets</a> of the base is off.
        </Note>
      ) : null}
      <FormPanel
        id={id("reads")}
        action={action}
        button={`Change access to ${name}`}
        isOpen={form !== undefined && hasErrors(form)}
      >
        <Form action={action} class="stack rows">
          {form?.errors.base ? <ErrorNote>{form.errors.base}</ErrorNote> : null}
          <input type="hidden" name="base" value={baseId} />
          <Field
            id={id("tables")}
            label="Tables"
            name="tables"
            hint="Names with commas between them. Empty: all, also those that are added later."
            value={value("tables", (tables ?? []).join(", "))}
          />
          <Field
            id={id("hidden")}
            label="Hidden fields"
            name="hidden"
            hint="As table.column, with commas between them."
            value={value("hidden", hidden.join(", "))}
          />
          <PrivateToggle id={id("private")} isOn={hasPrivate} />
          <Button>Save</Button>
        </Form>
        {isOnly ? null : (
          <Form action={action} values={{ base: baseId, remove: "on" }}>
            <Button kind="danger">Remove this base</Button>
          </Form>
        )}
      </FormPanel>
    </section>
  );
}

function PrivateToggle({ id, isOn }: { id: string; isOn: boolean }) {
  return (
    <Toggle
      id={id}
      name="private"
      label="Personal data and files"
      hint="Also fields of the types e-mail, phone, people and attachment."
      checked={isOn}
    />
  );
}

interface RulesProps {
  path: string;
  reads: ShownReads[];
  mayRule: boolean;
  form: FormState | undefined;
}

function Rules({ path, reads, mayRule, form }: RulesProps) {
  const all = reads.flatMap((one) => one.rules.map((rule) => ({ ...rule, base: one.name })));
  const action = `${path}/rules`;
  const value = (name: string) => (form ? typedText(form, name) : "");
  return (
    <Card id="rules" title="Without approval">
      <p class="muted">
        A rule lets proposals of this agent change some fields of a table by themselves, up to a number of
        records an hour. Everything else waits for a member.{" "}
        {mayRule ? null : "Only the account's owner makes rules."}
      </p>
      {form?.errors.remove ? <ErrorNote>{form.errors.remove}</ErrorNote> : null}
      <Table
        caption="Rules"
        rows={all}
        empty={<p>No rules: a member approves every change.</p>}
        columns={(column) => [
          column({ text: "Base", class: "wrap" }, (rule) => rule.base),
          column({ text: "Table", isHead: true, class: "wrap" }, (rule) => rule.table),
          column({ text: "Fields", class: "wrap" }, (rule) => rule.fields.join(", ")),
          column({ text: "Records an hour", isNumber: true }, (rule) => inDigits(rule.updatesPerHour)),
          column({ text: "Allowed by", class: "wrap" }, (rule) => rule.createdBy),
          column({ text: "Action", isHidden: true, class: "number" }, (rule) => (
            <Form action={action} values={{ remove: rule.id }}>
              <Button isSmall>
                Remove<span class="visually-hidden"> the rule of {rule.table}</span>
              </Button>
            </Form>
          )),
        ]}
      />
      <FormPanel
        id="new-rule"
        action={action}
        button="New rule"
        isOpen={form !== undefined && hasErrors(form)}
      >
        <Form action={action} class="stack rows">
          <SelectField
            id="rule-base"
            label="Base"
            name="base"
            value={value("base")}
            options={reads.map(({ baseId, name }) => ({ value: baseId, text: name }))}
          />
          <Field
            id="rule-table"
            label="Table"
            name="table"
            value={value("table")}
            error={form?.errors.table}
            required
          />
          <Field
            id="rule-columns"
            label="Fields"
            name="columns"
            hint="Such as status, with commas between several."
            value={value("columns")}
            error={form?.errors.columns}
            required
          />
          <Field
            id="rule-hourly"
            label="Records an hour"
            name="hourly"
            hint="A proposal that would change more waits for a member."
            value={value("hourly")}
            error={form?.errors.hourly}
            inputMode="numeric"
            required
          />
          <Button>Allow</Button>
        </Form>
      </FormPanel>
    </Card>
  );
}

function Calls({ agent, calls, now }: Pick<Props, "agent" | "calls" | "now">) {
  const nameOf = new Map(agent.bases.map(({ baseId, name }) => [baseId, name]));
  return (
    <Card id="calls" title="Latest calls">
      <Table
        caption={`Latest calls, newest first: ${counted(calls.length, "call")}`}
        rows={calls}
        empty={<Empty title="No calls yet">Connect the client with the address and the token.</Empty>}
        columns={(column) => [
          column({ text: "When", class: "nowrap" }, (call) => <Ago at={call.calledAt} now={now} />),
          column({ text: "Tool", isHead: true }, (call) => <code>{call.tool}</code>),
          column({ text: "Base", class: "wrap" }, (call) =>
            call.baseId === null ? "–" : (nameOf.get(call.baseId) ?? call.baseId),
          ),
          column({ text: "Rows", isNumber: true }, (call) =>
            call.rows === null ? "–" : inDigits(call.rows),
          ),
          column({ text: "Time", isNumber: true }, (call) => <>{inDigits(call.ms)} ms</>),
          column({ text: "Result", class: "wrap" }, (call) =>
            call.errorCode === "" ? (
              <Badge tone="green">OK</Badge>
            ) : (
              <Badge tone="yellow">{call.errorCode}</Badge>
            ),
          ),
        ]}
      />
    </Card>
  );
}
