/** API routes for change sets: changes of records that Basetide makes in Airtable with the base's own key. */
import { Elysia, t } from "elysia";
import { getBase, type ManagementContext } from "../../../core/control/bases";
import {
  type ChangeItem,
  type ChangeSet,
  createChangeSet,
  decideChangeSet,
  decisions,
  getChangeSet,
  listChangeItems,
  listChangeSets,
  undoChangeSet,
} from "../../../core/control/change-sets";
import { bearerAuth } from "../bearer-auth";
import { idParams } from "../schemas";
import * as schemas from "../schemas/change-sets";
import { raises } from "../schemas/parts";
import { writeRoutes } from "./writes";

const LISTED = 100;
const ITEMS = 100;

const summaries = {
  approve: "Approve a proposal: it is carried out",
  reject: "Reject a proposal",
  cancel: "Cancel a change set. What was sent before gets its result, the rest is not applied",
} as const;

/** With the log of what SQL users have written. */
export function changeSetRoutes(ctx: ManagementContext) {
  return new Elysia({ name: "changes" }).use(setRoutes(ctx)).use(writeRoutes(ctx));
}

function setRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  const routes = new Elysia({ prefix: "/api/v1/bases/:id/change-sets", tags: ["Change sets"] })
    .use(bearerAuth(db))
    .get(
      "",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        return (await listChangeSets(db, base.id, LISTED)).map(toJson);
      },
      {
        params: idParams,
        response: { 200: schemas.changeSets },
        detail: { summary: "The newest change sets of a base", description: "100 at most." },
      },
    )
    .post(
      "",
      async ({ account, actor, body, params, set }) => {
        const base = await getBase(db, params.id, account.id);
        set.status = 201;
        const { proposal: isProposal, ...asked } = body;
        return toJson(await createChangeSet({ ...ctx, actor }, base, { ...asked, isProposal }));
      },
      {
        params: idParams,
        body: schemas.newChangeSet,
        response: { 201: schemas.changeSet },
        detail: {
          summary: "Change records in Airtable",
          description:
            "The operations are made in their order, ten to a call, within the base's rate limit, and SQL shows each when its call is answered. Requires the setting `change_sets`.",
          ...raises("conflict"),
        },
      },
    )
    .get(
      "/:set",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        return toJson(await getChangeSet(db, base.id, params.set));
      },
      {
        params: schemas.changeSetParams,
        response: { 200: schemas.changeSet },
        detail: { summary: "One change set and how far it is" },
      },
    )
    .get(
      "/:set/items",
      async ({ account, params, query }) => {
        const base = await getBase(db, params.id, account.id);
        const { id } = await getChangeSet(db, base.id, params.set);
        const items = await listChangeItems(ctx, id, { from: query.from ?? 0, limit: ITEMS });
        const next = items.length < ITEMS ? null : items.at(-1)!.position + 1;
        return { items: items.map(itemJson), next };
      },
      {
        params: schemas.changeSetParams,
        query: t.Object({
          from: t.Optional(t.Integer({ minimum: 0, description: "Position of the first" })),
        }),
        response: { 200: schemas.changeItems },
        detail: { summary: "The operations of a change set and their results", description: "100 a page." },
      },
    )
    .post(
      "/:set/undo",
      async ({ account, actor, params, set }) => {
        const base = await getBase(db, params.id, account.id);
        set.status = 201;
        return toJson(await undoChangeSet({ ...ctx, actor }, base, params.set));
      },
      {
        params: schemas.changeSetParams,
        response: { 201: schemas.changeSet },
        detail: {
          summary: "Undo a change set that has ended, by another one",
          description:
            "Created records are deleted, changed cells and deleted records get back what they had. A record that was changed since is left as it is, and its operation refused. A deleted record comes back under a new id.",
          ...raises("conflict"),
        },
      },
    );
  for (const decision of decisions) {
    routes.post(
      `/:set/${decision}`,
      async ({ account, actor, params }) => {
        const base = await getBase(db, params.id, account.id);
        return toJson(await decideChangeSet({ ...ctx, actor }, base, params.set, decision));
      },
      {
        params: schemas.changeSetParams,
        response: { 200: schemas.changeSet },
        detail: { summary: summaries[decision], ...raises("conflict") },
      },
    );
  }
  return routes;
}

function toJson(set: ChangeSet) {
  return {
    id: set.id,
    base_id: set.baseId,
    created_by: set.createdBy,
    note: set.note,
    typecast: set.typecast,
    state: set.state,
    undoes: set.undoes,
    counts: set.counts,
    problem: set.problem,
    created_at: set.createdAt.toISOString(),
    expires_at: set.state === "proposed" ? set.expiresAt.toISOString() : null,
    decided_by: set.decidedBy,
    decided_at: set.decidedAt?.toISOString() ?? null,
    ended_at: set.endedAt?.toISOString() ?? null,
  };
}

function itemJson({ recordId, errorType, ...item }: ChangeItem) {
  return { ...item, record: recordId, error_type: errorType };
}
