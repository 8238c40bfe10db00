/** The pages and forms for what of a base is copied. */
import { Elysia } from "elysia";
import { readSelectable, setSelection } from "../../../../core/control/bases";
import { placeOf, selectionPath, withQuery } from "../../../../views/base/selection";
import { onOneBase } from "../../base-page";
import { type ConsoleContext, finish, formText } from "../../page-kit";
import { cachedSelectable } from "../../selectable-cache";
import { askedIn, saveSelection, showSelection } from "../../selection-form";

const SAVED = "Saved. The next sync, which starts in a moment, applies it.";

export function selectionPages(ctx: ConsoleContext) {
  const page = { place: "settings", title: "Copied data" } as const;
  return new Elysia({ name: "selection-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/selection", async ({ base, basePage, query }) => {
      const { selection } = base;
      const showing = { place: placeOf(base), selection, ...askedIn(query) };
      return basePage(page, await showSelection(showing, () => cachedSelectable(ctx, base)));
    })
    .post("/bases/:id/selection", async ({ request, base, basePage, by, body }) => {
      const { selection } = base;
      const [search, tableId] = [formText(body, "q"), formText(body, "table")];
      const refused = await saveSelection({ place: placeOf(base), selection, search, tableId }, body, {
        readSchema: () => readSelectable(ctx, base),
        save: (asked, schema) => setSelection(by, base, asked, schema),
      });
      if (!refused)
        return finish(request, withQuery(selectionPath(base), { table: tableId, q: search }), SAVED);
      return basePage({ ...page, status: refused.status }, refused.view);
    });
}
