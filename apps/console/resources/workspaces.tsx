/** Workspaces: the plans that cap their bases' calls, the usage, and the forecast for the month. */
import { t } from "elysia";
import type { Db } from "../../../core/context";
import { listBaseNames } from "../../../core/control/bases";
import {
  type Budget,
  budgetOf,
  createWorkspace,
  deleteWorkspace,
  getWorkspace,
  listWorkspaces,
  plans,
  sourcePlans,
  updateWorkspace,
  type Workspace,
  withBudgets,
} from "../../../core/control/budgets";
import { accountCalls } from "../../../core/control/history";
import { AccountFrame } from "../../../views/account/frame";
import { WorkspacePage } from "../../../views/account/workspace";
import { Workspaces } from "../../../views/account/workspaces";
import { PlanChoices, planChoices } from "../../../views/budget/plans";
import { type FormFields, type Typed, typedText } from "../../../views/components";
import { planOf, readCount } from "../plan-question";
import { emptyForm } from "../resource-kit/read-form";
import { ofAccount, resource } from "../resource-kit/resource";
import { cap, monthlyUse, plan } from "../schemas/budgets";
import { named, nullable, strict, timestamp } from "../schemas/parts";

const API = "/api/v1/workspaces";
const PAGE = "/account/workspaces";
const ONE = `${PAGE}/:id`;

const changes = {
  name: t.String({ minLength: 1, maxLength: 100 }),
  plan,
  calls_per_month: nullable(
    t.Integer({
      minimum: 1,
      maximum: 2_000_000_000,
      description: "Only with the plan `custom`; null means no cap",
    }),
  ),
  reserve: t.Integer({ minimum: 0, maximum: 2_000_000_000, description: "Default: a fifth of the calls" }),
};

const answer = named(
  "Workspace",
  t.Object({
    id: t.String(),
    name: t.String(),
    ...cap,
    bases: t.Array(t.String(), { description: "Ids of the bases" }),
    ...monthlyUse,
    created_at: timestamp,
  }),
);

async function shownAll(db: Db, all: Workspace[]) {
  const shown = ({ workspace, budget }: { workspace: Workspace; budget: Budget }) => ({
    ...budget,
    ...workspace,
    bases: workspace.baseIds,
  });
  return (await withBudgets(db, all)).map(shown);
}

async function shownOne(db: Db, one: Workspace) {
  const [shown] = await shownAll(db, [one]);
  // Throws not_found if it no longer exists.
  return shown ?? shownAll(db, [await getWorkspace(db, one.id)]).then(([again]) => again!);
}

const fields: FormFields = {
  name: {
    kind: "text",
    label: "Name",
    hint: "Its name in Airtable, so that you can recognize it.",
    maxLength: 100,
  },
  plan: {
    kind: "own",
    label: "Plan",
    show: (form) => (
      <PlanChoices
        legend="Plan"
        choices={planChoices}
        form={{ plan: typedText(form, "plan"), calls: typedText(form, "calls") }}
        errors={form.errors}
      />
    ),
  },
  calls: { kind: "own", label: "Calls" },
  reserve: {
    kind: "text",
    label: "Reserved for your apps",
    inputMode: "numeric",
    hint: "Monthly calls that sync never uses, reserved for apps that call Airtable directly. Defaults to a fifth of the plan's calls.",
    isOptional: true,
    maxLength: 12,
  },
};

const firstTyped: Typed = {
  plan: sourcePlans.find(({ callsPerMonth }) => callsPerMonth !== null)?.id ?? "custom",
};

function typedOf({ name, plan: id, callsPerMonth, reserve }: Workspace): Typed {
  const isCustom = id === "custom" && callsPerMonth !== null;
  return {
    name,
    plan: id,
    calls: isCustom ? String(callsPerMonth) : "",
    reserve: callsPerMonth === null ? "" : String(reserve),
  };
}

/** If the plan changed and the number in the field below did not, the reserve becomes a fifth of the new calls. */
function withUsualReserve(typed: Typed, before: Typed): Typed {
  const isOther = typed.plan !== before.plan || typed.calls !== before.calls;
  return isOther && typed.reserve === before.reserve ? { ...typed, reserve: "" } : typed;
}

function read(typed: Typed) {
  const text = (name: string) => typedText({ typed }, name);
  const { errors, callsPerMonth, plan: id } = planOf({ plan: text("plan"), calls: text("calls") });
  const reserve = text("reserve") === "" || callsPerMonth === null ? undefined : readCount(text("reserve"));
  const all: Record<string, string> = { ...errors };
  if (text("name") === "") all.name = "Enter its name in Airtable";
  if (reserve === null) all.reserve = "Enter a whole number, such as 20000";
  else if (reserve !== undefined && callsPerMonth && reserve > callsPerMonth)
    all.reserve = "The reserve cannot exceed the monthly calls";
  const calls_per_month = id === "custom" ? callsPerMonth : undefined;
  return { typed, errors: all, body: { name: text("name"), plan: id, calls_per_month, reserve } };
}

export const workspacesResource = resource({
  tag: "Workspaces",
  params: t.Object({ id: t.String({ maxLength: 100, description: "Id of the workspace: wsp_…" }) }),
  scope: ofAccount,
  find: ({ db }, account, { id }) => getWorkspace(db, id, account.id),
  console: {
    facts: () => ({ active: "usage" }),
    frame: (_, content) => <AccountFrame tab={PAGE}>{content}</AccountFrame>,
    all: {
      path: PAGE,
      title: "Usage",
      async show({ db }, { id }, { form }) {
        const [workspaces, calls] = await Promise.all([
          listWorkspaces(db, id).then((all) => withBudgets(db, all)),
          accountCalls(db, id, new Date()),
        ]);
        return <Workspaces {...{ workspaces, calls }} form={form ?? emptyForm(fields, firstTyped)} />;
      },
    },
    one: {
      path: ONE,
      title: ({ name }) => name,
      async show({ db }, workspace, { form, problem }) {
        const [budget, bases] = await Promise.all([
          budgetOf(db, workspace),
          listBaseNames(db, workspace.baseIds),
        ]);
        if (!budget) return null;
        const shown = form ?? emptyForm(fields, typedOf(workspace));
        return <WorkspacePage {...{ workspace, budget, bases, problem }} form={shown} />;
      },
    },
  },
})
  .all({
    api: `GET ${API}`,
    summary: "The account's workspaces and their usage this month",
    answer: t.Array(answer),
    run: async ({ db }, account) => shownAll(db, await listWorkspaces(db, account.id)),
  })
  .all({
    api: `POST ${API}`,
    summary: "Create a workspace",
    description: "To assign a base to the workspace, set the base's `workspace_id`.",
    raises: ["already_exists"],
    status: 201,
    body: named(
      "NewWorkspace",
      t.Object(
        {
          name: changes.name,
          plan,
          calls_per_month: t.Optional(changes.calls_per_month),
          reserve: t.Optional(changes.reserve),
        },
        strict,
      ),
      { name: "Marketing", plan: plans[1]! },
    ),
    answer,
    run: async (ctx, account, { calls_per_month: callsPerMonth, ...given }) =>
      shownOne(ctx.db, await createWorkspace(ctx, account.id, { ...given, callsPerMonth })),
    form: {
      path: PAGE,
      fields,
      read,
      errorAt: "name",
      to: PAGE,
      done: "Workspace created. Choose it in the settings of its bases.",
    },
  })
  .one({
    api: `GET ${API}/:id`,
    summary: "One workspace",
    answer,
    run: ({ db }, one) => shownOne(db, one),
  })
  .one({
    api: `PATCH ${API}/:id`,
    summary: "Change its name, plan, calls or reserve",
    description: "Omitted fields stay unchanged. A new plan sets its calls and a reserve of a fifth.",
    raises: ["already_exists"],
    body: named("WorkspaceChange", t.Partial(t.Object(changes), { ...strict, minProperties: 1 }), {
      plan: "custom",
      calls_per_month: 80_000,
      reserve: 10_000,
    }),
    answer,
    run: async (ctx, one, { calls_per_month: callsPerMonth, ...given }) =>
      shownOne(ctx.db, await updateWorkspace(ctx, one, { ...given, callsPerMonth })),
    form: {
      path: ONE,
      fields,
      read: (typed, before) => read(withUsualReserve(typed, typedOf(before))),
      errorAt: "name",
      to: ONE,
      done: "Saved. The change takes effect within 15 seconds.",
    },
  })
  .one({
    api: `DELETE ${API}/:id`,
    summary: "Delete a workspace",
    description: "Rejected (409) while it has bases, which would then have no cap.",
    raises: ["conflict"],
    run: deleteWorkspace,
    form: {
      path: `${ONE}/delete`,
      errorAt: "page",
      to: PAGE,
      done: "Workspace deleted.",
      asks: ({ name }) => ({
        title: `Delete the workspace “${name}”?`,
        effect: <p>Its plan and its month's figures are deleted. Nothing changes in Airtable.</p>,
        button: "Delete workspace",
        isDanger: true,
        back: ONE,
      }),
    },
  });
