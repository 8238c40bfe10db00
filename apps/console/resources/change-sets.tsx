/** Change sets of a base: changes of records that Basetide makes in Airtable with the base's own key, and can undo. */
import { t } from "elysia";
import type { Context } from "../../../core/context";
import type { Base } from "../../../core/control/bases";
import {
  type ChangeSet,
  changeSetStates,
  createChangeSet,
  type Decision,
  decideChangeSet,
  decisions,
  getChangeSet,
  itemStates,
  listChangeItems,
  listChangeSets,
  MOST_OPERATIONS,
  MOST_PROPOSED,
  operationKinds,
  undoChangeSet,
} from "../../../core/control/change-sets";
import { serverNow } from "../../../core/postgres";
import { ChangeSetPage, ChangeSetsPage, changesPath } from "../../../views/base/change-sets";
import { itemInput } from "../../../views/base/proposal";
import type { FormFields, Typed } from "../../../views/components";
import { onBase } from "../base-page";
import { ofBase, type RunContext, resource } from "../resource-kit/resource";
import { reviewOf, takenAnyway } from "../review";
import { idParams } from "../schemas";
import { LISTED, named, nullable, oneOf, strict, timestamp } from "../schemas/parts";

const API = "/api/v1/bases/:id/change-sets";
const PAGE = "/bases/:id/changes";

const cells = (description: string) => t.Record(t.String({ maxLength: 1000 }), t.Unknown(), { description });
const someCells = nullable(t.Record(t.String(), t.Unknown()));

const operation = named(
  "ChangeOperation",
  t.Object(
    {
      operation: oneOf(operationKinds),
      table: t.String({ minLength: 1, maxLength: 255, description: "Airtable's id or name of the table" }),
      record: t.Optional(t.String({ maxLength: 20, description: "The record's id; not for a create" })),
      fields: t.Optional(
        cells(
          'The cells to write, by the names or ids of their fields, in the form of Airtable\'s API. In a cell of links, `{"created_by": 0}` is the record that the first operation creates',
        ),
      ),
      expected: t.Optional(
        cells("CellValues that the record must still have: if one differs, the operation is refused"),
      ),
    },
    strict,
  ),
);

export const changeSet = named(
  "ChangeSet",
  t.Object({
    id: t.String(),
    base_id: t.String(),
    created_by: nullable(t.String({ description: "The member or token" })),
    note: t.String(),
    typecast: t.Boolean(),
    state: oneOf(changeSetStates),
    undoes: nullable(t.String({ description: "The set whose changes it undoes" })),
    counts: t.Partial(t.Object(Object.fromEntries(itemStates.map((state) => [state, t.Integer()]))), {
      description: "Operations by state",
    }),
    problem: t.String({ description: "Why it cannot continue at the moment; empty if it can" }),
    created_at: timestamp,
    expires_at: nullable(timestamp),
    decided_by: nullable(t.String()),
    decided_at: nullable(timestamp),
    reason: t.String({ description: "Why it was rejected; empty unless a reason was given" }),
    agent_id: nullable(t.String({ description: "The agent that proposed it" })),
    ended_at: nullable(timestamp),
  }),
);

export const shownSet = (set: ChangeSet) => ({
  ...set,
  expiresAt: set.state === "proposed" ? set.expiresAt : null,
});

/** A page of its operations, and the position with which the next one begins. */
async function itemsFrom(
  ctx: Pick<Context, "db" | "secrets">,
  { id }: ChangeSet,
  from: number,
  limit = LISTED,
) {
  const found = await listChangeItems(ctx, id, { from, limit: limit + 1 });
  return { items: found.slice(0, limit), next: found[limit]?.position ?? null };
}

const pageOf = (_: unknown, { base, set }: { base: Base; set: ChangeSet }) =>
  `${changesPath(base)}/${set.id}`;

export const changeSetsResource = resource({
  tag: "Change sets",
  params: t.Object({
    ...idParams.properties,
    set: t.String({ maxLength: 100, description: "Id of the change set: chs_…" }),
  }),
  scope: ofBase,
  find: async ({ db }, base, { set }) => ({ base, set: await getChangeSet(db, base.id, set!) }),
  console: {
    ...onBase("proxy"),
    all: {
      path: PAGE,
      title: ({ name }) => `Change sets · ${name}`,
      show: async ({ db }, base) => (
        <ChangeSetsPage base={base} sets={await listChangeSets(db, base.id, LISTED)} now={serverNow(base)} />
      ),
    },
    one: {
      path: `${PAGE}/:set`,
      title: ({ base }) => `Change set · ${base.name}`,
      async show(ctx, { base, set }, { query, form }) {
        const isProposal = set.state === "proposed";
        const from = !isProposal && /^\d{1,6}$/.test(String(query.from)) ? Number(query.from) : 0;
        const page = await itemsFrom(ctx, set, from, isProposal ? MOST_PROPOSED : LISTED);
        const review = isProposal ? await reviewOf(ctx, base, page.items) : undefined;
        const error = form?.errors.operations ?? Object.values(form?.errors ?? {})[0];
        return <ChangeSetPage {...{ base, set, ...page, review, error }} now={serverNow(base)} />;
      },
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "The newest change sets of a base",
    description: "100 at most.",
    answer: t.Array(changeSet),
    run: async ({ db }, base) => (await listChangeSets(db, base.id, LISTED)).map(shownSet),
  })
  .all({
    api: `POST ${API}`,
    summary: "Change records in Airtable",
    description:
      "The operations are made in their order, ten to a call, within the base's rate limit, and SQL shows each when its call is answered. Requires the setting `change_sets`.",
    raises: ["conflict"],
    status: 201,
    body: named(
      "NewChangeSet",
      t.Object(
        {
          operations: t.Array(operation, { minItems: 1, maxItems: MOST_OPERATIONS }),
          note: t.Optional(t.String({ maxLength: 1000, description: "What it is for" })),
          typecast: t.Optional(
            t.Boolean({
              description: "Airtable converts texts to the types of their fields, and adds options",
            }),
          ),
          proposal: t.Optional(
            t.Boolean({
              description: `Nothing is changed until it is approved; at most ${MOST_PROPOSED} operations`,
            }),
          ),
        },
        strict,
      ),
      {
        operations: [
          { operation: "update", table: "Tasks", record: "recAAAAAAAAAAAAAA", fields: { Status: "Done" } },
        ],
      },
    ),
    answer: changeSet,
    run: async (ctx, base, { proposal: isProposal, ...asked }) =>
      shownSet(await createChangeSet(ctx, base, { ...asked, isProposal })),
  })
  .one({
    api: `GET ${API}/:set`,
    summary: "One change set and how far it is",
    answer: changeSet,
    run: async (_, { set }) => shownSet(set),
  })
  .one({
    api: `GET ${API}/:set/items`,
    summary: "The operations of a change set and their results",
    description: "100 a page.",
    query: t.Object({ from: t.Optional(t.Integer({ minimum: 0, description: "Position of the first" })) }),
    answer: named(
      "ChangeItems",
      t.Object({
        items: t.Array(
          t.Object({
            position: t.Integer(),
            operation: oneOf(operationKinds),
            table: t.String(),
            record: nullable(t.String({ description: "Null for a create that has not been made" })),
            fields: someCells,
            expected: someCells,
            state: oneOf(itemStates),
            error_type: t.String({
              description: "Airtable's type of the error, or STALE, ROW_DOES_NOT_EXIST, …",
            }),
            error: t.String(),
          }),
        ),
        next: nullable(t.Integer({ description: "`from` of the next page; null on the last" })),
      }),
    ),
    async run(ctx, { set }, { from = 0 }) {
      const { items, next } = await itemsFrom(ctx, set, from);
      return { items: items.map((item) => ({ ...item, record: item.recordId })), next };
    },
  })
  .one({
    api: `POST ${API}/:set/undo`,
    summary: "Undo a change set that has ended, by another one",
    description:
      "Created records are deleted, changed cells and deleted records get back what they had. A record that was changed since is left as it is, and its operation refused. A deleted record comes back under a new id.",
    raises: ["conflict"],
    status: 201,
    answer: changeSet,
    run: async (ctx, { base, set }) => shownSet(await undoChangeSet(ctx, base, set.id)),
    form: {
      path: `${PAGE}/:set/undo`,
      to: ({ id }, { base }) => `${changesPath(base)}/${id}`,
      done: "This change set undoes the other one.",
    },
  });

interface DecisionInput {
  operations?: number[];
  seen?: string;
  reason?: string;
}

/** Decides, for the API and the forms of a base's change sets and of the account's proposals. */
export async function decide(
  ctx: RunContext,
  { base, set }: { base: Base; set: ChangeSet },
  decision: Decision,
  { operations: only, seen, reason }: DecisionInput,
): Promise<ChangeSet> {
  const isTaken = decision === "approve" && seen !== undefined && set.state === "proposed";
  const items = isTaken ? await listChangeItems(ctx, set.id, { from: 0, limit: MOST_PROPOSED }) : [];
  const expected = isTaken ? await takenAnyway(ctx, base, items, { seen, only }) : undefined;
  return decideChangeSet(ctx, base, set.id, decision, { only, expected, reason });
}

/** Of an approval or a rejection. */
export const decisionBody = t.Optional(
  nullable(
    named(
      "ChangeSetDecision",
      t.Partial(
        t.Object({
          operations: t.Array(t.Integer({ minimum: 0 }), {
            minItems: 1,
            maxItems: MOST_OPERATIONS,
            description: "Of an approval: the positions of those that are approved; absent: all",
          }),
          seen: t.String({
            maxLength: 100,
            description:
              "Of an approval: `seen` of the proposal as it was read. With it, operations on records that have changed since are made, too, if they have not changed again",
          }),
          reason: t.String({ maxLength: 1000, description: "Of a rejection: the author can read it" }),
        }),
        strict,
      ),
      { reason: "These tasks are still open" },
    ),
  ),
);

const options = Array.from({ length: MOST_PROPOSED }, (_, at) => ({
  value: itemInput(at),
  label: "",
  hint: "",
}));

/** What the page's forms send besides the decision. */
const decisionFields: Record<Decision, FormFields> = {
  approve: {
    only: { kind: "text", label: "Only those that are checked", isOptional: true },
    operations: { kind: "switches", prefix: "operation", options },
    seen: { kind: "text", label: "Seen", isOptional: true },
  },
  reject: { reason: { kind: "text", label: "Reason", isOptional: true } },
  cancel: {},
};

function readDecision({ only, operations = [], seen, reason }: Typed) {
  if (reason) return { errors: {}, body: { reason } };
  if (!only) return { errors: {}, body: {} };
  const chosen = options.flatMap(({ value }, at) => (operations.includes(value) ? [at] : []));
  const errors: Record<string, string> =
    chosen.length === 0 ? { operations: "Check at least one operation, or reject the proposal" } : {};
  return { errors, body: { operations: chosen, ...(seen ? { seen } : {}) } };
}

const texts: Record<Decision, { summary: string; done: string }> = {
  approve: {
    summary: "Approve a proposal: it is carried out",
    done: "Approved. The changes are being made.",
  },
  reject: { summary: "Reject a proposal", done: "Rejected. Nothing was changed." },
  cancel: {
    summary: "Cancel a change set. What was sent before gets its result, the rest is not applied",
    done: "Canceled. What was sent before gets its result.",
  },
};

for (const decision of decisions) {
  changeSetsResource.one({
    api: `POST ${API}/:set/${decision}`,
    summary: texts[decision].summary,
    raises: ["conflict"],
    body: decisionBody,
    answer: changeSet,
    run: async (ctx, target, input) => shownSet(await decide(ctx, target, decision, input ?? {})),
    form: {
      path: `${PAGE}/:set/${decision}`,
      fields: decisionFields[decision],
      read: readDecision,
      to: pageOf,
      done: texts[decision].done,
    },
  });
}
