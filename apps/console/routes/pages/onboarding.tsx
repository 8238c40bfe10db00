/**
 * Connects a base, one page per step: platform, key, base, destination, start. Answers are stored in a draft, so that
 * each page survives a reload and the Back button. A page that is opened too early redirects to the missing step.
 */

import { Elysia } from "elysia";
import { listWorkspaces, withBudgets } from "../../../../core/control/budgets";
import {
  createDraft,
  type DraftBudget,
  draftChoices,
  finishDraft,
  getDraft,
  latestDraft,
  recheckDraftKey,
  setDraftBase,
  setDraftKey,
} from "../../../../core/control/onboarding";
import { getDatabase, locationOf } from "../../../../core/control/placement";
import { platformById } from "../../../../core/source";
import type { PlanForm } from "../../../../views/budget/plans";
import { BaseStep, ChoiceForm, NoChoices, NoChoicesStep } from "../../../../views/onboarding/base";
import { currentStep, stepPath } from "../../../../views/onboarding/frame";
import { KeyForm, KeyStep } from "../../../../views/onboarding/key";
import { PlatformStep } from "../../../../views/onboarding/platform";
import {
  defaultPlan,
  StartForm,
  type StartProps,
  StartStep,
  strictestPlan,
  UNSURE,
} from "../../../../views/onboarding/start";
import { isHtmx } from "../../../../views/render";
import { type DraftCall, elsewhere, onOneDraft, stepPage } from "../../draft-page";
import { type FormError, formResultOf } from "../../form-error";
import { type ConsoleContext, formText, goTo, signedIn } from "../../page-kit";
import { planCosts, planOf } from "../../plan-question";
import { destinationPages } from "./destination";
import { draftSelectionPages } from "./draft-selection";

/** Errors that another key, or other rights of it, would solve. */
const keyErrors: readonly string[] = ["source_key_refused", "source_forbidden", "source_not_found"];

export function onboardingPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const first = new Elysia()
    .use(signedIn(ctx))
    .get("", async ({ account, page }) => {
      const view = <PlatformStep platforms={ctx.platforms} latest={await latestDraft(db, account.id)} />;
      return page(stepPage("Connect a base"), view);
    })
    .post("", async ({ request, account, body }) => {
      const draft = await createDraft(ctx, account.id, formText(body, "platform"));
      return goTo(request, stepPath(draft, "key"));
    });
  const steps = new Elysia()
    .use(onOneDraft(ctx))
    .get("/:id", ({ request, draft }) =>
      goTo(request, draft.baseId ? `/bases/${draft.baseId}` : stepPath(draft, currentStep(draft))),
    )
    .get("/:id/key", (call) => elsewhere(call, "key") ?? keyPage(ctx, call))
    .post("/:id/key", async (call) => {
      const { request, account, draft, body } = call;
      const key = formText(body, "key");
      const isRecheck = draft.hasKey && formText(body, "recheck") === "on";
      const keepsKey = key === "" && draft.hasKey && !isRecheck;
      const { failed } = await formResultOf(async () => {
        if (!keepsKey) await (isRecheck ? recheckDraftKey(ctx, draft) : setDraftKey(ctx, draft, key));
      });
      if (failed) return keyPage(ctx, call, { ...failed, typed: key });
      const { reportsChanges } = await getDraft(db, draft.id, account.id);
      // The user decides whether to go on with a key that cannot be used for live sync.
      return goTo(request, stepPath(draft, reportsChanges === false && !keepsKey ? "key" : "base"));
    })
    .get("/:id/base", (call) => elsewhere(call, "base") ?? basePage(ctx, call, formText(call.query, "q")))
    .post("/:id/base", async (call) => {
      const { request, draft, body } = call;
      const chosen = formText(body, "base");
      const { failed } = await formResultOf(() => setDraftBase(ctx, draft, chosen));
      if (failed) return basePage(ctx, call, formText(body, "q"), { ...failed, chosen });
      return goTo(request, stepPath(draft, "destination"));
    })
    .get("/:id/start", (call) => elsewhere(call, "start") ?? startPage(ctx, call))
    .post("/:id/start", async (call) => {
      const { request, by, draft, body } = call;
      const form = { plan: formText(body, "plan"), calls: formText(body, "calls") };
      const { errors, budget } = budgetFrom(form);
      if (!budget) return startPage(ctx, call, { form, errors, status: 422 });
      const { failed, value: baseId } = await formResultOf(() => finishDraft(by, draft, budget));
      if (!failed) return goTo(request, `/bases/${baseId}`);
      return startPage(ctx, call, { form, errors: { form: failed.message }, status: failed.status });
    });
  return new Elysia({ prefix: "/new", detail: { hide: true } })
    .use(first)
    .use(steps)
    .use(draftSelectionPages(ctx))
    .use(destinationPages(ctx));
}

function keyPage(
  ctx: ConsoleContext,
  { request, page, draft }: DraftCall,
  formError?: FormError & { typed: string },
) {
  const platform = platformById(ctx.platforms, draft.platform);
  const props = { draft, platform, error: formError?.message, typed: formError?.typed };
  const view = isHtmx(request) ? <KeyForm {...props} /> : <KeyStep {...props} />;
  return page(stepPage("API key", formError?.status), view);
}

async function basePage(
  ctx: ConsoleContext,
  { request, page, draft }: DraftCall,
  query: string,
  formError?: FormError & { chosen: string },
) {
  const { keyHelpUrl } = platformById(ctx.platforms, draft.platform);
  const isOfKey = ({ code }: FormError) => keyErrors.includes(code);
  const { failed, value: all } = await formResultOf(() => draftChoices(ctx, draft));
  if (failed) {
    const props = { draft, keyHelpUrl, error: failed.message, isKeyError: isOfKey(failed) };
    const view = isHtmx(request) ? <NoChoices {...props} /> : <NoChoicesStep {...props} />;
    return page(stepPage("Which base?", failed.status), view);
  }
  const choices = all.filter((base) => base.name.toLowerCase().includes(query.toLowerCase()));
  const open = all.filter(({ connectedAs }) => connectedAs === null);
  const only = open.length === 1 ? open[0]!.id : undefined;
  const chosen = formError?.chosen ?? draft.sourceBase?.id ?? only;
  const isKeyError = formError !== undefined && isOfKey(formError);
  const props = { draft, choices, chosen, keyHelpUrl, query, error: formError?.message, isKeyError };
  const view = isHtmx(request) ? <ChoiceForm {...props} /> : <BaseStep {...props} total={all.length} />;
  return page(stepPage("Which base?", formError?.status), view);
}

async function startPage(
  ctx: ConsoleContext,
  { request, page, draft }: DraftCall,
  shown: Partial<Pick<StartProps, "form" | "errors">> & { status?: number } = {},
) {
  const { destination } = draft;
  const [database, workspaces, region] = await Promise.all([
    destination?.kind === "existing" ? getDatabase(ctx.db, destination.database_id, draft.accountId) : null,
    listWorkspaces(ctx.db, draft.accountId).then((all) => withBudgets(ctx.db, all)),
    locationOf(ctx, draft.accountId, destination?.kind === "new" ? destination.region : undefined),
  ]);
  const costs = await planCosts(ctx, draft, workspaces);
  const { name } = platformById(ctx.platforms, draft.platform);
  const { form = defaultPlan(workspaces), errors = {}, status } = shown;
  const props = { draft, platform: name, database: database?.name, workspaces, costs, region, form, errors };
  const view = isHtmx(request) ? <StartForm {...props} /> : <StartStep {...props} />;
  return page(stepPage("Ready to sync", status), view);
}

/** An existing workspace, a new one for the plan, or none if there is no cap. */
function budgetFrom(form: PlanForm): { errors: StartProps["errors"]; budget: DraftBudget | null } {
  if (form.plan === "") return { errors: { plan: "Choose a plan or a workspace" }, budget: null };
  const asked = form.plan === UNSURE ? { ...form, plan: strictestPlan.id } : form;
  const { errors, plan, callsPerMonth } = planOf(asked);
  if (plan !== null && plan !== "custom" && callsPerMonth === null)
    return { errors: {}, budget: { kind: "none" } };
  if (plan === null) return { errors: {}, budget: { kind: "existing", workspaceId: form.plan } };
  if (Object.keys(errors).length > 0) return { errors, budget: null };
  return {
    errors: {},
    budget: {
      kind: "new",
      plan,
      callsPerMonth: plan === "custom" ? (callsPerMonth ?? undefined) : undefined,
    },
  };
}
