/** The pages and forms for what of a base is copied. */
import { Elysia } from "elysia";
import { actorOf, type CurrentUser } from "../../../../core/control/accounts";
import { type Base, readSelectable, setSelection } from "../../../../core/control/bases";
import { placeOf, selectionPath, withQuery } from "../../../../views/base/selection";
import { answerOnBase } from "../../base-page";
import { type ConsoleContext, finish, formText, onOneBase } from "../../page-kit";
import { cachedSelectable } from "../../selectable-cache";
import { askedIn, saveSelection, showSelection } from "../../selection-form";

const SAVED = "Saved. The next sync, which starts in a moment, applies it.";

export function selectionPages(ctx: ConsoleContext) {
  const show = (
    request: Request,
    currentUser: CurrentUser,
    base: Base,
    view: preact.VNode,
    status?: number,
  ) => answerOnBase(request, currentUser, base, { place: "settings", title: "Copied data", status }, view);

  return new Elysia({ name: "selection-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/selection", async ({ request, currentUser, base, query }) => {
      const { selection } = base;
      const showing = { place: placeOf(base), selection, ...askedIn(query) };
      const view = await showSelection(showing, () => cachedSelectable(ctx, base));
      return show(request, currentUser, base, view);
    })
    .post("/bases/:id/selection", async ({ request, currentUser, base, body }) => {
      const { selection } = base;
      const [search, tableId] = [formText(body, "q"), formText(body, "table")];
      const refused = await saveSelection({ place: placeOf(base), selection, search, tableId }, body, {
        readSchema: () => readSelectable(ctx, base),
        save: (asked, schema) => setSelection({ ...ctx, actor: actorOf(currentUser) }, base, asked, schema),
      });
      if (!refused)
        return finish(request, withQuery(selectionPath(base), { table: tableId, q: search }), SAVED);
      return show(request, currentUser, base, refused.view, refused.status);
    });
}
