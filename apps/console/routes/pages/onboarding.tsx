/**
 * Connects a base, one page per step: platform, key, base, destination, start. Answers are stored in a draft, so that
 * each page survives a reload and the Back button. A page that is opened too early redirects to the missing step.
 */

import { Elysia } from "elysia";
import { actorOf, type CurrentUser } from "../../../../core/control/accounts";
import { listWorkspaces, withBudgets } from "../../../../core/control/budgets";
import {
  type Choice,
  createDraft,
  type Draft,
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
import { currentStep, type Step, stepPath, steps } from "../../../../views/onboarding/frame";
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
import { type FormError, formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, formText, goTo, signedIn } from "../../page-kit";
import { planCosts, planOf } from "../../plan-question";
import { destinationPages } from "./destination";
import { draftSelectionPages } from "./draft-selection";

/** Errors that another key, or other rights of it, would solve. */
const keyErrors: readonly string[] = ["source_key_refused", "source_forbidden", "source_not_found"];

export function onboardingPages(ctx: ConsoleContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/new", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", async ({ request, currentUser, account }) => {
      const view = <PlatformStep platforms={ctx.platforms} latest={await latestDraft(db, account.id)} />;
      return answer(request, stepPage("Connect a base", currentUser), view);
    })
    .post("", async ({ request, account, body }) => {
      const draft = await createDraft(ctx, account.id, formText(body, "platform"));
      return goTo(request, stepPath(draft, "key"));
    })
    .get("/:id", async ({ request, account, params }) => {
      const draft = await getDraft(db, params.id, account.id);
      return goTo(request, draft.baseId ? `/bases/${draft.baseId}` : stepPath(draft, currentStep(draft)));
    })
    .get("/:id/key", async ({ request, currentUser, account, params }) => {
      const draft = await getDraft(db, params.id, account.id);
      return elsewhere(request, draft, "key") ?? keyPage(ctx, request, currentUser, draft);
    })
    .post("/:id/key", async ({ request, currentUser, account, params, body }) => {
      const draft = await getDraft(db, params.id, account.id);
      const key = formText(body, "key");
      const isRecheck = draft.hasKey && formText(body, "recheck") === "on";
      const keepsKey = key === "" && draft.hasKey && !isRecheck;
      const formError = keepsKey
        ? null
        : await formErrorOf(() => (isRecheck ? recheckDraftKey(ctx, draft) : setDraftKey(ctx, draft, key)));
      if (formError) return keyPage(ctx, request, currentUser, draft, { ...formError, typed: key });
      const { reportsChanges } = await getDraft(db, draft.id, account.id);
      // The user decides whether to go on with a key that cannot be used for live sync.
      return goTo(request, stepPath(draft, reportsChanges === false && !keepsKey ? "key" : "base"));
    })
    .get("/:id/base", async ({ request, currentUser, account, params, query }) => {
      const draft = await getDraft(db, params.id, account.id);
      return (
        elsewhere(request, draft, "base") ?? basePage(ctx, request, currentUser, draft, formText(query, "q"))
      );
    })
    .post("/:id/base", async ({ request, currentUser, account, params, body }) => {
      const draft = await getDraft(db, params.id, account.id);
      const chosen = formText(body, "base");
      const formError = await formErrorOf(() => setDraftBase(ctx, draft, chosen));
      if (formError)
        return basePage(ctx, request, currentUser, draft, formText(body, "q"), { ...formError, chosen });
      return goTo(request, stepPath(draft, "destination"));
    })
    .get("/:id/start", async ({ request, currentUser, account, params }) => {
      const draft = await getDraft(db, params.id, account.id);
      return elsewhere(request, draft, "start") ?? startPage(ctx, request, currentUser, draft);
    })
    .post("/:id/start", async ({ request, currentUser, account, params, body }) => {
      const draft = await getDraft(db, params.id, account.id);
      const form = { plan: formText(body, "plan"), calls: formText(body, "calls") };
      const { errors, budget } = budgetFrom(form);
      if (!budget) return startPage(ctx, request, currentUser, draft, { form, errors, status: 422 });
      let baseId = "";
      const formError = await formErrorOf(async () => {
        baseId = await finishDraft({ ...ctx, actor: actorOf(currentUser) }, draft, budget);
      });
      if (!formError) return goTo(request, `/bases/${baseId}`);
      const { message, status } = formError;
      return startPage(ctx, request, currentUser, draft, { form, errors: { form: message }, status });
    })
    .use(draftSelectionPages(ctx))
    .use(destinationPages(ctx));
}

export function stepPage(title: string, currentUser: CurrentUser) {
  return { title, currentUser, active: "bases", width: "narrow" } as const;
}

/** Where to redirect: to the base that was created from the draft, or to the missing step. */
export function elsewhere(request: Request, draft: Draft, step: Step): Response | null {
  if (draft.baseId) return goTo(request, `/bases/${draft.baseId}`);
  const order = steps.map(({ id }) => id);
  const missing = currentStep(draft);
  return order.indexOf(step) > order.indexOf(missing) ? goTo(request, stepPath(draft, missing)) : null;
}

function keyPage(
  ctx: ConsoleContext,
  request: Request,
  currentUser: CurrentUser,
  draft: Draft,
  formError?: FormError & { typed: string },
) {
  const platform = platformById(ctx.platforms, draft.platform);
  const props = { draft, platform, error: formError?.message, typed: formError?.typed };
  const page = { ...stepPage("API key", currentUser), status: formError?.status };
  return answer(request, page, isHtmx(request) ? <KeyForm {...props} /> : <KeyStep {...props} />);
}

async function basePage(
  ctx: ConsoleContext,
  request: Request,
  currentUser: CurrentUser,
  draft: Draft,
  query: string,
  formError?: FormError & { chosen: string },
) {
  const { keyHelpUrl } = platformById(ctx.platforms, draft.platform);
  const isOfKey = ({ code }: FormError) => keyErrors.includes(code);
  let all: Choice[] = [];
  const listError = await formErrorOf(async () => {
    all = await draftChoices(ctx, draft);
  });
  if (listError) {
    const page = { ...stepPage("Which base?", currentUser), status: listError.status };
    const props = { draft, keyHelpUrl, error: listError.message, isKeyError: isOfKey(listError) };
    return answer(request, page, isHtmx(request) ? <NoChoices {...props} /> : <NoChoicesStep {...props} />);
  }
  const choices = all.filter((base) => base.name.toLowerCase().includes(query.toLowerCase()));
  const open = all.filter(({ connectedAs }) => connectedAs === null);
  const only = open.length === 1 ? open[0]!.id : undefined;
  const chosen = formError?.chosen ?? draft.sourceBase?.id ?? only;
  const isKeyError = formError !== undefined && isOfKey(formError);
  const props = { draft, choices, chosen, keyHelpUrl, query, error: formError?.message, isKeyError };
  const page = { ...stepPage("Which base?", currentUser), status: formError?.status };
  const view = isHtmx(request) ? <ChoiceForm {...props} /> : <BaseStep {...props} total={all.length} />;
  return answer(request, page, view);
}

async function startPage(
  ctx: ConsoleContext,
  request: Request,
  currentUser: CurrentUser,
  draft: Draft,
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
  const page = { ...stepPage("Ready to sync", currentUser), status };
  return answer(request, page, isHtmx(request) ? <StartForm {...props} /> : <StartStep {...props} />);
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
