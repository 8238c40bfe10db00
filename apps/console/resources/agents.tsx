/** Agents: AI clients that read bases by SQL and propose changes at `/mcp`, what they may do, and their latest calls. */
import type { Static } from "@sinclair/typebox";
import { t } from "elysia";
import { type Account, can } from "../../../core/control/accounts";
import {
  type Agent,
  type AgentBase,
  type AskedBase,
  createAgent,
  getAgent,
  highestLimits,
  listAgentCalls,
  listAgents,
  renewAgentToken,
  revokeAgent,
  setAgentRules,
  updateAgent,
  usualLimits,
} from "../../../core/control/agents";
import { getBase, listBases } from "../../../core/control/bases";
import { agentRoles } from "../../../core/control/placement";
import { AgentPage, type ShownReads } from "../../../views/account/agent";
import { Agents } from "../../../views/account/agents";
import { AccountFrame } from "../../../views/account/frame";
import { type FormField, type FormFields, type Typed, typedText } from "../../../views/components";
import { MCP_PATH } from "../mcp/path";
import type { ConsoleContext } from "../page-kit";
import { emptyForm } from "../resource-kit/read-form";
import { ofAccount, resource } from "../resource-kit/resource";
import { LISTED, named, nullable, strict, timestamp, timestampOf } from "../schemas/parts";
import { cachedTables } from "../shape-cache";

const API = "/api/v1/agents";
const PAGE = "/account/agents";
const ONE = `${PAGE}/:id`;

type Limit = keyof typeof usualLimits;
const leastOf = (name: Limit) => (name === "proposals" ? 0 : 1);

const limit = (name: Limit, description: string) =>
  t.Integer({
    minimum: leastOf(name),
    maximum: highestLimits[name],
    description: `${description}; usually ${usualLimits[name]}`,
    examples: [usualLimits[name]],
  });

const limits = {
  calls: limit("calls", "Calls of tools a minute"),
  queries: limit("queries", "Queries that run at once"),
  proposals: limit("proposals", "Proposals that wait"),
  operations: limit("operations", "Operations of a proposal"),
};

const agentLimits = named("AgentLimits", t.Partial(t.Object(limits, strict)), { operations: 100 });

const ruleFacts = {
  base_id: t.String({ maxLength: 100 }),
  table: t.String({ maxLength: 500, description: "Airtable's id; also its name, or its SQL name" }),
  fields: t.Array(t.String({ maxLength: 500 }), {
    minItems: 1,
    maxItems: 100,
    description: "Airtable's ids of fields; also their names, or those of their columns",
  }),
  updates_per_hour: t.Integer({ minimum: 1, maximum: 10_000, description: "Records, counted per table" }),
};

const agentBase = t.Object({
  base_id: t.String(),
  name: t.String(),
  tables: nullable(
    t.Array(t.String(), { description: "Airtable's ids of the tables that it may read; null: all" }),
  ),
  hidden_fields: t.Array(t.String(), { description: "Airtable's ids of fields that it may not read" }),
  private_fields: t.Boolean({
    description: "It may read fields with e-mail addresses, phone numbers, people and attachments",
  }),
});

const agent = named(
  "Agent",
  t.Object({
    id: t.String(),
    name: t.String(),
    may_propose: t.Boolean({ description: "It may propose changes, which a member must approve" }),
    limits: agentLimits,
    rules: t.Array(
      t.Object({ ...ruleFacts, created_by: t.String({ description: "The owner who allows it" }) }),
      {
        description: "What its proposals may change without a person",
      },
    ),
    created_by: t.String({ description: "E-mail address of the user, or name of the token, who created it" }),
    created_at: timestamp,
    has_token: t.Boolean({ description: "It has a token that works" }),
    last_used_at: nullable(timestampOf("Accurate to an hour")),
    bases: t.Array(agentBase),
  }),
);

const shown = (one: Agent) => ({
  ...one,
  bases: one.bases.map((base) => ({ ...base, hiddenFields: base.hidden, privateFields: base.hasPrivate })),
  rules: one.rules.map((rule) => ({ ...rule, table: rule.tableId })),
});

const askedBases = t.Array(
  named(
    "AgentReads",
    t.Object(
      {
        base_id: t.String({ maxLength: 100 }),
        tables: t.Optional(
          nullable(
            t.Array(t.String({ maxLength: 500 }), {
              minItems: 1,
              maxItems: 1000,
              description: "SQL names, names in Airtable, or ids; absent or null: all",
            }),
          ),
        ),
        hidden_fields: t.Optional(
          t.Array(t.String({ maxLength: 1000 }), {
            maxItems: 1000,
            description: "`table.column` with SQL names or names in Airtable, or ids of fields",
          }),
        ),
        private_fields: t.Optional(t.Boolean({ default: false })),
      },
      strict,
    ),
  ),
  { minItems: 1, maxItems: 100 },
);

type ReadsInput = Static<typeof askedBases>[number];

function basesOf(asked: ReadsInput[]): AskedBase[] {
  return asked.map(({ base_id, tables, hidden_fields, private_fields }) => ({
    baseId: base_id,
    tables,
    hidden: hidden_fields,
    hasPrivate: private_fields,
  }));
}

/** What the agent reads, as the API takes it, but for one base. */
function otherBases({ bases }: Agent, baseId: string): ReadsInput[] {
  return bases
    .filter((base) => base.baseId !== baseId)
    .map((base) => ({
      base_id: base.baseId,
      tables: base.tables,
      hidden_fields: base.hidden,
      private_fields: base.hasPrivate,
    }));
}

const withToken = named(
  "CreatedAgent",
  t.Object({
    agent,
    token: t.String({ description: "It cannot be read again later" }),
    url: t.String({ description: "The address that the client connects to" }),
  }),
);

const urlOf = ({ config }: Pick<ConsoleContext, "config">) => new URL(MCP_PATH, config.consoleUrl).toString();

const privateField: FormField = {
  kind: "switches",
  prefix: "private",
  options: [
    {
      value: "private",
      label: "Personal data and files",
      hint: "Also fields of the types e-mail, phone, people and attachment. Without this, the agent cannot read them.",
    },
  ],
};

const hiddenField = {
  kind: "text",
  label: "Hidden fields",
  hint: "Fields that it may not read, as table.column, with commas between them.",
  isOptional: true,
  maxLength: 5000,
} as const;

const nameField = {
  kind: "text",
  label: "Name",
  hint: "The client and its person, such as “Claude of Lina”.",
  maxLength: 60,
} as const;

const proposeField: FormField = {
  kind: "switches",
  prefix: "propose",
  options: [
    {
      value: "propose",
      label: "May propose changes",
      hint: "Nothing changes in Airtable until a member approves it. The base's setting “Change sets” must be on.",
    },
  ],
};

/** Of a new one. */
async function newFields({ db }: Pick<ConsoleContext, "db">, { id }: Account): Promise<FormFields> {
  const bases = await listBases(db, id);
  return {
    name: nameField,
    bases: {
      kind: "switches",
      label: "Bases that it may read",
      prefix: "base",
      wrong: "Choose at least one base.",
      options: bases.map((base) => ({ value: base.id, label: base.name || base.sourceBaseId, hint: "" })),
    },
    private: privateField,
    propose: proposeField,
  };
}

function readNew({ name = "", bases = [], private: personal = [], propose = [] }: Typed) {
  const private_fields = personal.includes("private");
  const body = {
    name,
    may_propose: propose.includes("propose"),
    bases: [...bases].map((base_id) => ({ base_id, private_fields })),
  };
  return { errors: {}, body };
}

const limitField = (name: Limit, label: string) =>
  ({
    kind: "text",
    label,
    hint: `At most ${highestLimits[name]}.`,
    wrong: `Enter a whole number from ${leastOf(name)} to ${highestLimits[name]}`,
    inputMode: "numeric",
    maxLength: 6,
  }) as const;

const changeFields: FormFields = {
  name: nameField,
  propose: proposeField,
  calls: limitField("calls", "Calls a minute"),
  queries: limitField("queries", "Queries at once"),
  proposals: limitField("proposals", "Proposals that wait"),
  operations: limitField("operations", "Operations of a proposal"),
};

function typedOf({ name, mayPropose, limits: own }: Agent): Typed {
  const numbers = Object.entries(own).map(([key, value]) => [key, String(value)]);
  return { name, propose: mayPropose ? ["propose"] : [], ...Object.fromEntries(numbers) };
}

function readChange({ name = "", propose = [], ...numbers }: Typed) {
  const limits = Object.entries(numbers).map(([key, text]) => {
    const digits = String(text).replace(/[,\s]/g, "");
    return [key, /^\d+$/.test(digits) ? Number(digits) : Number.NaN];
  });
  const body = { name, may_propose: propose.includes("propose"), limits: Object.fromEntries(limits) };
  return { errors: {}, body };
}

/** Of one base: what the agent may read there. */
const readsFields: FormFields = {
  base: { kind: "text", label: "Base" },
  tables: {
    kind: "text",
    label: "Tables",
    hint: "Names with commas between them. Empty: all, also those that are added later.",
    isOptional: true,
    maxLength: 5000,
  },
  hidden: hiddenField,
  private: privateField,
  remove: { kind: "text", label: "Remove", isOptional: true },
};

function listed(text: Typed[string] | undefined): string[] {
  return String(text ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function readReads({ base = "", tables, hidden, private: personal = [], remove }: Typed, target: Agent) {
  const others = otherBases(target, String(base));
  if (remove) {
    const errors: Record<string, string> =
      others.length === 0 ? { base: "An agent reads at least one base. Revoke the agent instead" } : {};
    return { errors, body: { bases: others } };
  }
  const one: ReadsInput = {
    base_id: String(base),
    tables: listed(tables).length === 0 ? null : listed(tables),
    hidden_fields: listed(hidden),
    private_fields: personal.includes("private"),
  };
  return { errors: {}, body: { bases: [...others, one] } };
}

const ruleFields: FormFields = {
  base: { kind: "text", label: "Base" },
  table: { kind: "text", label: "Table", maxLength: 500 },
  columns: { kind: "text", label: "Fields", hint: "With commas between them.", maxLength: 5000 },
  hourly: { kind: "text", label: "Records an hour", inputMode: "numeric", maxLength: 6 },
  remove: { kind: "text", label: "Remove", isOptional: true },
};

function readRule({ base = "", table = "", columns, hourly = "", remove }: Typed, target: Agent) {
  const kept = target.rules
    .filter(({ id }) => id !== remove)
    .map(({ baseId, tableId, fields, updatesPerHour }) => ({
      base_id: baseId,
      table: tableId,
      fields,
      updates_per_hour: updatesPerHour,
    }));
  if (remove) return { errors: {}, body: { rules: kept } };
  const errors: Record<string, string> = {};
  const updates_per_hour = /^\d{1,5}$/.test(String(hourly)) ? Number(hourly) : 0;
  if (table === "") errors.table = "Name the table";
  if (listed(columns).length === 0) errors.columns = "Name at least one field";
  if (updates_per_hour < 1) errors.hourly = "Enter a whole number, such as 20";
  const rule = { base_id: String(base), table: String(table), fields: listed(columns), updates_per_hour };
  return { errors, body: { rules: [...kept, rule] } };
}

/** What the agent reads and may change alone, by the names that people know. Ids stay where a name is not known. */
async function shownReads(ctx: ConsoleContext, of: Agent): Promise<ShownReads[]> {
  const roles = await agentRoles(ctx.db, of.id);
  return Promise.all(
    of.bases.map(async (reads: AgentBase) => {
      const base = await getBase(ctx.db, reads.baseId, of.accountId);
      const tables = await cachedTables(ctx, base);
      const fields = tables.flatMap((table) =>
        table.columns.map((column) => ({
          id: column.fieldId,
          column: column.name,
          name: `${table.name}.${column.name}`,
        })),
      );
      const tableName = (id: string) => tables.find(({ tableId }) => tableId === id)?.name ?? id;
      return {
        baseId: reads.baseId,
        name: reads.name,
        role: roles.get(base.database.id),
        hasChangeSets: base.settings.changeSets,
        tables: reads.tables?.map(tableName),
        hidden: reads.hidden.map((id) => fields.find((field) => field.id === id)?.name ?? id),
        hasPrivate: reads.hasPrivate,
        rules: of.rules
          .filter(({ baseId }) => baseId === reads.baseId)
          .map((rule) => ({
            ...rule,
            table: tableName(rule.tableId),
            fields: rule.fields.map((id) => fields.find((field) => field.id === id)?.column ?? id),
          })),
      };
    }),
  );
}

export const agentsResource = resource({
  tag: "Agents",
  params: t.Object({ id: t.String({ maxLength: 100, description: "Id of the agent: agt_…" }) }),
  scope: ofAccount,
  find: ({ db }, account, { id }) => getAgent(db, account.id, id),
  console: {
    facts: () => ({ active: "agents" }),
    frame: (_, content) => <AccountFrame tab={PAGE}>{content}</AccountFrame>,
    all: {
      path: PAGE,
      title: "Agents",
      show: async (ctx, account, { form }) => (
        <Agents
          agents={await listAgents(ctx.db, account.id)}
          form={form ?? emptyForm(await newFields(ctx, account))}
          now={new Date()}
        />
      ),
    },
    one: {
      path: ONE,
      title: ({ name }) => `Agent ${name}`,
      async show(ctx, target, { form, once, user }) {
        const [reads, calls, bases] = await Promise.all([
          shownReads(ctx, target),
          listAgentCalls(ctx.db, target.id, LISTED),
          listBases(ctx.db, target.accountId),
        ]);
        const own = (fields: FormFields) => (form?.fields === fields ? form : undefined);
        return (
          <AgentPage
            agent={target}
            reads={reads}
            others={bases.filter(({ id }) => !target.bases.some(({ baseId }) => baseId === id))}
            calls={calls}
            url={urlOf(ctx)}
            token={once.token}
            form={own(changeFields) ?? emptyForm(changeFields, typedOf(target))}
            readsForm={own(readsFields)}
            ruleForm={own(ruleFields)}
            mayRule={can(user.account.role, "members")}
            now={new Date()}
          />
        );
      },
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "Agents of the account",
    answer: t.Array(agent),
    run: async ({ db }, account) => (await listAgents(db, account.id)).map(shown),
  })
  .all({
    api: `POST ${API}`,
    summary: "Create an agent",
    description:
      "It gets a SQL user of its own in the database of each base, which may read what is listed here and nothing else. Rejected (409) for a base in a database that you host.",
    raises: ["already_exists", "conflict"],
    status: 201,
    body: named(
      "NewAgent",
      t.Object(
        {
          name: t.String({
            minLength: 1,
            maxLength: 60,
            description: "Unique in the account, ignoring case",
          }),
          may_propose: t.Optional(t.Boolean({ default: false })),
          limits: t.Optional(agentLimits),
          bases: askedBases,
        },
        strict,
      ),
      { name: "Claude", bases: [{ base_id: "bas_0123456789abcdefghjk" }] },
    ),
    answer: withToken,
    async run(ctx, account, { name, may_propose: mayPropose = false, limits: own, bases }, { userId }) {
      const asked = { name, mayPropose, limits: own, bases: basesOf(bases), userId };
      const made = await createAgent(ctx, account.id, asked);
      return { agent: shown(made.agent), token: made.token, url: urlOf(ctx) };
    },
    form: {
      path: PAGE,
      fields: newFields,
      read: readNew,
      errorAt: "form",
      to: (made) => `${PAGE}/${made.agent.id}`,
      done: ({ token }) => ({ toast: { text: "Agent created." }, once: { token } }),
    },
  })
  .one({
    api: `GET ${API}/:id`,
    summary: "One agent",
    answer: agent,
    run: async (_, target) => shown(target),
  })
  .one({
    api: `PATCH ${API}/:id`,
    summary: "Change an agent",
    description:
      "`bases` replaces all that it may read. What it may no longer read it cannot read from the next call on.",
    raises: ["already_exists", "conflict"],
    body: named(
      "AgentChange",
      t.Partial(
        t.Object({
          name: t.String({ minLength: 1, maxLength: 60 }),
          may_propose: t.Boolean(),
          limits: agentLimits,
          bases: askedBases,
        }),
        strict,
      ),
      { may_propose: true },
    ),
    answer: agent,
    run: async (ctx, target, { name, may_propose: mayPropose, limits: own, bases }) =>
      shown(
        await updateAgent(ctx, target, { name, mayPropose, limits: own, bases: bases && basesOf(bases) }),
      ),
    form: {
      path: ONE,
      fields: changeFields,
      read: readChange,
      errorAt: "name",
      to: ONE,
      done: "Saved.",
    },
  })
  .one({
    body: t.Object({ bases: askedBases }),
    run: (ctx, target, { bases }) => updateAgent(ctx, target, { bases: basesOf(bases) }),
    form: {
      path: `${ONE}/reads`,
      fields: readsFields,
      read: readReads,
      errorAt: "base",
      to: ONE,
      done: "Saved. It holds from the next call on.",
    },
  })
  .one({
    api: `PUT ${API}/:id/rules`,
    summary: "Set what proposals of an agent may change without a person",
    description:
      "Replaces all rules; `[]` turns them off. A proposal of updates alone, of fields that a rule names, is approved if the records of the last hour are no more than the rule allows. By the account's owner only.",
    body: named(
      "AgentRules",
      t.Object({ rules: t.Array(t.Object(ruleFacts, strict), { maxItems: 20 }) }, strict),
      {
        rules: [
          { base_id: "bas_0123456789abcdefghjk", table: "tasks", fields: ["status"], updates_per_hour: 20 },
        ],
      },
    ),
    answer: agent,
    run: async (ctx, target, { rules }) =>
      shown(
        await setAgentRules(
          ctx,
          target,
          rules.map(({ base_id: baseId, updates_per_hour: updatesPerHour, ...rule }) => ({
            ...rule,
            baseId,
            updatesPerHour,
          })),
        ),
      ),
    form: {
      path: `${ONE}/rules`,
      fields: ruleFields,
      read: readRule,
      errorAt: (typed) => (typedText({ typed }, "remove") === "" ? "columns" : "remove"),
      to: ONE,
      done: "Saved.",
    },
  })
  .one({
    api: `GET ${API}/:id/calls`,
    summary: "The latest calls of an agent",
    description: "100 at most, kept for 30 days.",
    answer: t.Array(
      named(
        "AgentCall",
        t.Object({
          called_at: timestamp,
          tool: t.String(),
          base_id: nullable(t.String()),
          ms: t.Integer(),
          rows: nullable(t.Integer()),
          error_code: t.String({ description: "Empty if it succeeded" }),
        }),
      ),
    ),
    run: ({ db }, { id }) => listAgentCalls(db, id, LISTED),
  })
  .one({
    api: `POST ${API}/:id/token`,
    summary: "Give an agent a new token. The old one no longer works",
    answer: withToken,
    run: async (ctx, target, _, { userId }) => ({
      agent: shown(target),
      token: await renewAgentToken(ctx, target, userId),
      url: urlOf(ctx),
    }),
    form: {
      path: `${ONE}/token`,
      to: ONE,
      done: ({ token }) => ({ once: { token } }),
      asks: ({ name, hasToken }) => ({
        title: `Create a new token for ${name}?`,
        effect: (
          <p>{hasToken ? "The token that its client uses no longer works." : "It has none that works."}</p>
        ),
        button: "Create token",
        isDanger: hasToken,
        back: ONE,
      }),
    },
  })
  .one({
    api: `DELETE ${API}/:id`,
    summary: "Revoke an agent",
    description: "Its token stops working at once, and its SQL users are dropped.",
    gone: "Revoked",
    run: (ctx, target) => revokeAgent(ctx, target),
    form: {
      path: `${ONE}/revoke`,
      to: PAGE,
      done: "Agent revoked. Its token no longer works.",
      asks: ({ name }) => ({
        title: `Revoke the agent “${name}”?`,
        effect: <p>Its token stops working at once, and its SQL users are dropped. Its proposals stay.</p>,
        button: "Revoke agent",
        isDanger: true,
        back: ONE,
      }),
    },
  });
