/** Choosing what is copied before a base is connected, so that nothing else is ever read. */
import { Elysia } from "elysia";
import { type Draft, draftSelectable, setDraftSelection } from "../../../../core/control/onboarding";
import type { SourceSchema } from "../../../../core/source";
import { withQuery } from "../../../../views/base/selection";
import { StepFrame, stepPath } from "../../../../views/onboarding/frame";
import { type DraftCall, onOneDraft, stepPage } from "../../draft-page";
import { type ConsoleContext, finish, formText, goTo } from "../../page-kit";
import { askedIn, saveSelection, showSelection } from "../../selection-form";
import { TimedCache } from "../../timed-cache";

export function draftSelectionPages(ctx: ConsoleContext) {
  /** A search costs no call to the source. */
  const kept = new TimedCache<SourceSchema>({ most: 50 });

  function show({ page, draft }: DraftCall, view: preact.VNode, status?: number) {
    return page(
      stepPage("Choose what is copied", status),
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
    .use(onOneDraft(ctx))
    .get("/:id/selection", async (call) => {
      const { request, draft, query } = call;
      if (draft.baseId || !draft.sourceBase) return goTo(request, `/new/${draft.id}`);
      const { selection, sourceBase } = draft;
      const showing = { place: placeOf(draft), selection, ...askedIn(query) };
      const readSchema = () => kept.get(`${draft.id} ${sourceBase.id}`, () => draftSelectable(ctx, draft));
      return show(call, await showSelection(showing, readSchema));
    })
    .post("/:id/selection", async (call) => {
      const { request, draft, body } = call;
      if (draft.baseId || !draft.sourceBase) return goTo(request, `/new/${draft.id}`);
      const place = placeOf(draft);
      const [search, tableId] = [formText(body, "q"), formText(body, "table")];
      const refused = await saveSelection({ place, selection: draft.selection, search, tableId }, body, {
        readSchema: () => draftSelectable(ctx, draft),
        save: (asked, schema) => setDraftSelection(ctx, draft, asked, schema),
      });
      if (!refused) return finish(request, withQuery(place.path, { table: tableId, q: search }), "Saved.");
      return show(call, refused.view, refused.status);
    });
}

function placeOf(draft: Draft) {
  const next = { href: stepPath(draft, "start"), text: "Continue" };
  return { path: `/new/${draft.id}/selection`, unanswered: [], next };
}
