/** Proposals for the account's bases: what waits for a decision, and what became of the others. */
import { t } from "elysia";
import { getBase, listBases } from "../../../core/control/bases";
import {
  changeSetStates,
  getProposal,
  itemStates,
  listChangeItems,
  listProposals,
  MOST_PROPOSED,
  operationKinds,
  undoChangeSet,
} from "../../../core/control/change-sets";
import { AccountFrame } from "../../../views/account/frame";
import { Proposals } from "../../../views/account/proposals";
import { ofAccount, resource } from "../resource-kit/resource";
import { reviewOf } from "../review";
import { LISTED, named, nullable, oneOf } from "../schemas/parts";
import { changeSet, decide, decisionBody, shownSet } from "./change-sets";

const API = "/api/v1/proposals";
const PAGE = "/account/proposals";

const cell = t.Unknown({ description: "In the form of Airtable's API" });

const reviewed = t.Object({
  position: t.Integer(),
  operation: oneOf(operationKinds),
  table: t.String(),
  record: nullable(t.String()),
  title: nullable(t.String({ description: "The record's primary field" })),
  state: oneOf(itemStates),
  error: t.String(),
  is_stale: t.Boolean({ description: "The record has changed since in a field that the proposal relies on" }),
  is_gone: t.Boolean({ description: "The record is gone" }),
  cells: t.Array(
    t.Object({
      field: t.String(),
      now: t.Optional(cell),
      proposed: t.Optional(cell),
      was: t.Optional(t.Unknown({ description: "When it was proposed, if that has changed" })),
    }),
  ),
});

export const proposalsResource = resource({
  tag: "Proposals",
  params: t.Object({ id: t.String({ maxLength: 100, description: "Id of the proposal: chs_…" }) }),
  scope: ofAccount,
  async find({ db }, account, { id }) {
    const set = await getProposal(db, account.id, id);
    return { set, base: await getBase(db, set.baseId, account.id) };
  },
  console: {
    facts: () => ({ active: "agents" }),
    frame: (_, content) => <AccountFrame tab={PAGE}>{content}</AccountFrame>,
    all: {
      path: PAGE,
      title: "Proposals",
      show: async ({ db }, { id }) => (
        <Proposals
          proposals={await listProposals(db, id, { limit: LISTED })}
          bases={await listBases(db, id)}
          now={new Date()}
        />
      ),
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "Proposals for the account's bases: first those that wait, then the newest",
    description: "100 at most.",
    query: t.Object({ state: t.Optional(oneOf(changeSetStates, { description: "Only these" })) }),
    answer: t.Array(changeSet),
    run: async ({ db }, { id }, { state }) =>
      (await listProposals(db, id, { state, limit: LISTED })).map(shownSet),
  })
  .one({
    api: `GET ${API}/:id`,
    summary: "One proposal, compared with the records as Airtable has them now",
    description: "Costs a call to Airtable for each 100 records while it waits.",
    answer: named(
      "Proposal",
      t.Object({
        proposal: changeSet,
        operations: t.Array(reviewed),
        seen: nullable(
          t.String({ description: "For an approval of operations on records that have changed since" }),
        ),
        review_problem: t.String({ description: "Why the records could not be read; empty if they were" }),
      }),
    ),
    async run(ctx, { set, base }) {
      const items = await listChangeItems(ctx, set.id, { from: 0, limit: MOST_PROPOSED });
      const review = set.state === "proposed" ? await reviewOf(ctx, base, items) : undefined;
      const byPosition = new Map(review?.items.map((item) => [item.position, item]));
      const operations = items.map((item) => {
        const now = byPosition.get(item.position);
        const keys = Object.keys({ ...item.expected, ...item.fields });
        const plain = keys.map((key) => ({
          field: key,
          was: item.expected?.[key],
          ...(item.fields && key in item.fields ? { proposed: item.fields[key] } : {}),
        }));
        return {
          ...item,
          record: item.recordId,
          table: now?.table ?? item.table,
          title: now?.title ?? null,
          isStale: now?.isStale ?? false,
          isGone: now?.isGone ?? false,
          cells:
            now?.cells.map(({ name, before, after, proposedFrom }) => ({
              field: name,
              now: before ?? null,
              ...(after ? { proposed: after.value } : {}),
              ...(proposedFrom ? { was: proposedFrom.value } : {}),
            })) ?? plain,
        };
      });
      return {
        proposal: shownSet(set),
        operations,
        seen: review?.seen ?? null,
        reviewProblem: review?.problem ?? "",
      };
    },
  })
  .one({
    api: `POST ${API}/:id/undo`,
    summary: "Undo what a proposal has changed, by another change set",
    raises: ["conflict"],
    status: 201,
    answer: changeSet,
    run: async (ctx, { set, base }) => shownSet(await undoChangeSet(ctx, base, set.id)),
  });

for (const decision of ["approve", "reject"] as const) {
  proposalsResource.one({
    api: `POST ${API}/:id/${decision}`,
    summary: decision === "approve" ? "Approve a proposal, or some of its operations" : "Reject a proposal",
    raises: ["conflict"],
    body: decisionBody,
    answer: changeSet,
    run: async (ctx, target, input) => shownSet(await decide(ctx, target, decision, input ?? {})),
  });
}
