/** Pages of a base's change sets: the list, and one with what it changes and the buttons that decide about it. */
import { Elysia } from "elysia";
import { actorOf } from "../../../../core/control/accounts";
import { getBase } from "../../../../core/control/bases";
import {
  type Decision,
  decideChangeSet,
  decisions,
  getChangeSet,
  listChangeItems,
  listChangeSets,
  undoChangeSet,
} from "../../../../core/control/change-sets";
import { serverNow } from "../../../../core/postgres";
import { ChangeSetPage, ChangeSetsPage, changesPath } from "../../../../views/base/change-sets";
import { BaseFrame } from "../../../../views/base/frame";
import { answer, type ConsoleContext, finish, signedIn } from "../../page-kit";
import { writePages } from "./write-pages";

const LISTED = 100;
const ITEMS = 100;

const decidedText: Record<Decision, string> = {
  approve: "Approved. The changes are being made.",
  reject: "Rejected. Nothing was changed.",
  cancel: "Canceled. What was sent before gets its result.",
};

/** With the page of what SQL users have written. */
export function changeSetPages(ctx: ConsoleContext) {
  return new Elysia({ name: "changes-pages" }).use(setPages(ctx)).use(writePages(ctx));
}

function setPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const pages = new Elysia({ prefix: "/bases/:id/changes", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", async ({ request, currentUser, account, params }) => {
      const base = await getBase(db, params.id, account.id);
      const sets = await listChangeSets(db, base.id, LISTED);
      return answer(
        request,
        { title: `Change sets · ${base.name}`, currentUser, active: "bases", base },
        <BaseFrame base={base} place="proxy">
          <ChangeSetsPage base={base} sets={sets} now={serverNow(base)} />
        </BaseFrame>,
      );
    })
    .get("/:set", async ({ request, currentUser, account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const set = await getChangeSet(db, base.id, params.set);
      const from = /^\d{1,6}$/.test(String(query.from)) ? Number(query.from) : 0;
      const items = await listChangeItems(ctx, set.id, { from, limit: ITEMS });
      const next = items.length < ITEMS ? null : items.at(-1)!.position + 1;
      return answer(
        request,
        { title: `Change set · ${base.name}`, currentUser, active: "bases", base },
        <BaseFrame base={base} place="proxy">
          <ChangeSetPage {...{ base, set, items, next }} now={serverNow(base)} />
        </BaseFrame>,
      );
    })
    .post("/:set/undo", async ({ request, currentUser, account, params }) => {
      const base = await getBase(db, params.id, account.id);
      const { id } = await undoChangeSet({ ...ctx, actor: actorOf(currentUser) }, base, params.set);
      return finish(request, `${changesPath(base)}/${id}`, "This change set undoes the other one.");
    });
  for (const decision of decisions) {
    pages.post(`/:set/${decision}`, async ({ request, currentUser, account, params }) => {
      const base = await getBase(db, params.id, account.id);
      const { id } = await decideChangeSet(
        { ...ctx, actor: actorOf(currentUser) },
        base,
        params.set,
        decision,
      );
      return finish(request, `${changesPath(base)}/${id}`, decidedText[decision]);
    });
  }
  return pages;
}
