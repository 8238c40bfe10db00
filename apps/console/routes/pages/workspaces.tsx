/** Pages about the account's workspaces: their plans, the use of their calls, and the forecast for the month. */

import { Elysia } from "elysia";
import { actorOf, type CurrentUser } from "../../../../core/control/accounts";
import { listBaseNames } from "../../../../core/control/bases";
import {
  budgetOf,
  createWorkspace,
  deleteWorkspace,
  getWorkspace,
  listWorkspaces,
  type NewWorkspace,
  sourcePlans,
  updateWorkspace,
  type Workspace,
  withBudgets,
} from "../../../../core/control/budgets";
import { accountCalls } from "../../../../core/control/history";
import { isBasetideError } from "../../../../core/errors";
import { WorkspacePage, type WorkspacePageProps } from "../../../../views/account/workspace";
import {
  type WorkspaceErrors,
  type WorkspaceForm,
  Workspaces,
  type WorkspacesProps,
} from "../../../../views/account/workspaces";
import { formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, finish, formText, goTo, signedIn } from "../../page-kit";
import { planOf, readCount } from "../../plan-question";

const PATH = "/account/workspaces";

const EMPTY: WorkspaceForm = {
  name: "",
  plan: sourcePlans.find(({ callsPerMonth }) => callsPerMonth !== null)?.id ?? "custom",
  calls: "",
  reserve: "",
};

export function workspacePages(ctx: ConsoleContext) {
  const { db } = ctx;
  const by = (currentUser: CurrentUser) => ({ ...ctx, actor: actorOf(currentUser) });

  async function showAll(
    request: Request,
    currentUser: CurrentUser,
    shown: Partial<Pick<WorkspacesProps, "form" | "errors">>,
    status = 200,
  ) {
    const { id } = currentUser.account;
    const [workspaces, calls] = await Promise.all([
      listWorkspaces(db, id).then((all) => withBudgets(db, all)),
      accountCalls(db, id, new Date()),
    ]);
    return answer(
      request,
      { title: "Usage", currentUser, active: "usage", status },
      <Workspaces {...{ workspaces, calls, form: EMPTY, errors: {}, ...shown }} />,
    );
  }

  async function showOne(
    request: Request,
    currentUser: CurrentUser,
    workspace: Workspace,
    shown: Partial<Pick<WorkspacePageProps, "form" | "errors" | "problem">>,
    status = 200,
  ) {
    const [budget, bases] = await Promise.all([
      budgetOf(db, workspace),
      listBaseNames(db, workspace.baseIds),
    ]);
    // It was deleted a moment ago.
    if (!budget) return goTo(request, PATH);
    return answer(
      request,
      { title: workspace.name, currentUser, active: "usage", status },
      <WorkspacePage
        {...{ workspace, budget, bases, form: formOf(workspace), errors: {}, ...shown }}
      />,
    );
  }

  return new Elysia({ prefix: PATH, detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", ({ request, currentUser }) => showAll(request, currentUser, {}))
    .post("", async ({ request, currentUser, account, body }) => {
      const form = readForm(body);
      const { errors, workspace } = toWorkspace(form);
      if (!workspace) return showAll(request, currentUser, { form, errors }, 422);
      const formError = await formErrorOf(() => createWorkspace(by(currentUser), account.id, workspace));
      if (formError)
        return showAll(request, currentUser, { form, errors: { name: formError.message } }, formError.status);
      return finish(request, PATH, "Workspace created. Choose it in the settings of its bases.");
    })
    .get("/:id", async ({ request, currentUser, account, params }) => {
      return showOne(request, currentUser, await getWorkspace(db, params.id, account.id), {});
    })
    .post("/:id", async ({ request, currentUser, account, params, body }) => {
      const before = await getWorkspace(db, params.id, account.id);
      const typed = readForm(body);
      const form = withUsualReserve(typed, formOf(before));
      const { errors, workspace } = toWorkspace(form);
      if (!workspace) return showOne(request, currentUser, before, { form, errors }, 422);
      const formError = await formErrorOf(() => updateWorkspace(by(currentUser), before, workspace));
      if (!formError) {
        const page = `${PATH}/${before.id}`;
        return finish(request, page, "Saved. The change takes effect within 15 seconds.");
      }
      return showOne(
        request,
        currentUser,
        before,
        { form, errors: { name: formError.message } },
        formError.status,
      );
    })
    .post("/:id/delete", async ({ request, currentUser, account, params }) => {
      const workspace = await getWorkspace(db, params.id, account.id);
      try {
        await deleteWorkspace(by(currentUser), workspace);
      } catch (error) {
        if (!isBasetideError(error, "conflict")) throw error;
        return showOne(request, currentUser, workspace, { problem: error.message }, 409);
      }
      return finish(request, PATH, "Workspace deleted.");
    });
}

function readForm(body: unknown): WorkspaceForm {
  return {
    name: formText(body, "name"),
    plan: formText(body, "plan"),
    calls: formText(body, "calls"),
    reserve: formText(body, "reserve"),
  };
}

function formOf({ name, plan, callsPerMonth, reserve }: Workspace): WorkspaceForm {
  const isCustom = plan === "custom" && callsPerMonth !== null;
  return {
    name,
    plan,
    calls: isCustom ? String(callsPerMonth) : "",
    reserve: callsPerMonth === null ? "" : String(reserve),
  };
}

/** If the plan changed and the number in the field below did not, the reserve becomes a fifth of the new calls. */
function withUsualReserve(typed: WorkspaceForm, before: WorkspaceForm): WorkspaceForm {
  const isOther = typed.plan !== before.plan || typed.calls !== before.calls;
  return isOther && typed.reserve === before.reserve ? { ...typed, reserve: "" } : typed;
}

/** Validates the form without any request, and returns the errors by field. */
function toWorkspace(form: WorkspaceForm): { errors: WorkspaceErrors; workspace: NewWorkspace | null } {
  const { errors, plan, callsPerMonth } = planOf(form);
  const reserve = form.reserve === "" || callsPerMonth === null ? undefined : readCount(form.reserve);
  const all: WorkspaceErrors = { ...errors };
  if (form.name === "") all.name = "Enter its name in Airtable";
  if (reserve === null) all.reserve = "Enter a whole number, such as 20000";
  else if (reserve !== undefined && callsPerMonth && reserve > callsPerMonth)
    all.reserve = "The reserve cannot exceed the monthly calls";
  if (Object.keys(all).length > 0 || plan === null) return { errors: all, workspace: null };
  return {
    errors: {},
    workspace: {
      name: form.name,
      plan,
      callsPerMonth: plan === "custom" ? callsPerMonth : undefined,
      reserve: reserve ?? undefined,
    },
  };
}
