/** Choosing what is copied before a base is connected, so that nothing else is ever read. */
import { Elysia } from "elysia";
import type { CurrentUser } from "../../../../core/control/accounts";
import {
  type Draft,
  draftSelectable,
  getDraft,
  setDraftSelection,
} from "../../../../core/control/onboarding";
import type { SourceSchema } from "../../../../core/source";
import { withQuery } from "../../../../views/base/selection";
import { StepFrame, stepPath } from "../../../../views/onboarding/frame";
import { answer, type ConsoleContext, finish, formText, goTo, signedIn } from "../../page-kit";
import { askedIn, saveSelection, showSelection } from "../../selection-form";
import { TimedCache } from "../../timed-cache";
import { stepPage } from "./onboarding";

export function draftSelectionPages(ctx: ConsoleContext) {
  const { db } = ctx;
  /** A search costs no call to the source. */
  const kept = new TimedCache<SourceSchema>({ most: 50 });

  function page(request: Request, currentUser: CurrentUser, draft: Draft, view: preact.VNode, status = 200) {
    return answer(
      request,
      { ...stepPage("Choose what is copied", currentUser), status },
      <StepFrame
        draft={draft}
        step="start"
        title="Choose what is copied"
        lead="Nothing has been copied yet. What you leave out is never read. You can change this at any time."
      >
        {view}
      </StepFrame>,
    );
  }

  return new Elysia({ name: "draft-selection-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/:id/selection", async ({ request, currentUser, account, params, query }) => {
      const draft = await getDraft(db, params.id, account.id);
      if (draft.baseId || !draft.sourceBase) return goTo(request, `/new/${draft.id}`);
      const { selection, sourceBase } = draft;
      const showing = { place: placeOf(draft), selection, ...askedIn(query) };
      const readSchema = () => kept.get(`${draft.id} ${sourceBase.id}`, () => draftSelectable(ctx, draft));
      return page(request, currentUser, draft, await showSelection(showing, readSchema));
    })
    .post("/:id/selection", async ({ request, currentUser, account, params, body }) => {
      const draft = await getDraft(db, params.id, account.id);
      if (draft.baseId || !draft.sourceBase) return goTo(request, `/new/${draft.id}`);
      const place = placeOf(draft);
      const [search, tableId] = [formText(body, "q"), formText(body, "table")];
      const refused = await saveSelection({ place, selection: draft.selection, search, tableId }, body, {
        readSchema: () => draftSelectable(ctx, draft),
        save: (asked, schema) => setDraftSelection(ctx, draft, asked, schema),
      });
      if (!refused) return finish(request, withQuery(place.path, { table: tableId, q: search }), "Saved.");
      return page(request, currentUser, draft, refused.view, refused.status);
    });
}

function placeOf(draft: Draft) {
  const next = { href: stepPath(draft, "start"), text: "Continue" };
  return { path: `/new/${draft.id}/selection`, unanswered: [], next };
}
