/** What the pages of a draft, with which a base is connected, have in common. */
import { Elysia } from "elysia";
import { type Draft, getDraft } from "../../core/control/onboarding";
import { currentStep, type Step, stepPath, steps } from "../../views/onboarding/frame";
import { admitted, type ConsoleContext, goTo, type PageCall } from "./page-kit";

export interface DraftCall extends PageCall {
  draft: Draft;
}

/** Pages for signed-in users of one draft, which an address names as `:id`: provides `draft`, too. */
export function onOneDraft(ctx: ConsoleContext) {
  return new Elysia({ name: "on-one-draft" }).derive({ as: "scoped" }, async (call) => {
    const user = await admitted(ctx, call);
    const { id } = call.params as { id: string };
    return { ...user, draft: await getDraft(ctx.db, id, user.account.id) };
  });
}

export function stepPage(title: string, status?: number) {
  return { title, active: "bases", width: "narrow", status } as const;
}

/** Where to redirect: to the base that was created from the draft, or to the missing step. */
export function elsewhere({ request, draft }: DraftCall, step: Step): Response | null {
  if (draft.baseId) return goTo(request, `/bases/${draft.baseId}`);
  const order = steps.map(({ id }) => id);
  const missing = currentStep(draft);
  return order.indexOf(step) > order.indexOf(missing) ? goTo(request, stepPath(draft, missing)) : null;
}
