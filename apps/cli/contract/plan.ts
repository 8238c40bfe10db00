/**
 * Compares the file with the account: a step for each thing that differs. Pure, so that `diff`, `check` and `apply` agree.
 *
 * What the file does not mention stays as it is; what it does not list is deleted only with `--prune`.
 */
import { baseParts, type Changing, type Connecting, type Difference, type PartContext } from "./base-parts";
import { changeDetails, differing, shown } from "./difference";
import { ContractError, type ParsedContract, type Path, type Problem } from "./parse";
import { baseKey, type Contract, type ContractBase } from "./schema";
import type { AccountState } from "./state";
import type { PlanStep } from "./step";

/** @throws ContractError if the account cannot become what the file says */
export function planContract(
  parsed: ParsedContract,
  state: AccountState,
  { prune }: { prune: boolean },
): PlanStep[] {
  const { contract } = parsed;
  const problems: Problem[] = [];
  const context: Context = {
    ...parsed,
    state,
    problem: (path, message) => problems.push({ line: parsed.lineOf(path), message }),
  };
  const steps = [
    ...workspaceSteps(context),
    ...baseSteps(context),
    ...webhookSteps(context),
    ...memberSteps(context),
    ...(prune ? removals(contract, state) : []),
  ];
  if (problems.length > 0) throw new ContractError(parsed.file, problems);
  return steps;
}

/** What the account has and the file does not list. */
export function unlisted(contract: Contract, state: AccountState): string[] {
  return removals(contract, state).map(({ what }) => what);
}

interface Context extends ParsedContract {
  state: AccountState;
  problem: (path: Path, message: string) => void;
}

function workspaceSteps({ contract, state, lineOf }: Context): PlanStep[] {
  return (contract.workspaces ?? []).flatMap((wanted, index): PlanStep[] => {
    const step = {
      on: "workspace" as const,
      what: `workspace ${wanted.name}`,
      line: lineOf(["workspaces", index]),
      isGrave: false,
    };
    const found = state.workspaces.find(({ name }) => name === wanted.name);
    if (!found) return [{ ...step, effect: "create", details: [], create: wanted }];
    const { name: _, calls_per_month, ...rest } = wanted;
    // Only the plan `custom` has calls of its own.
    const given = { ...rest, ...(wanted.plan === "custom" ? { calls_per_month } : {}) };
    const change = differing(given, found);
    const details = changeDetails(change, found);
    return details.length === 0 ? [] : [{ ...step, effect: "change", details, id: found.id, change }];
  });
}

function baseSteps(context: Context): PlanStep[] {
  const { contract, state, lineOf, problem } = context;
  return (contract.bases ?? []).flatMap((wanted, index): PlanStep[] => {
    const path: Path = ["bases", index];
    const found = state.bases.find(
      ({ base_id, platform }) => baseKey({ base: base_id, platform }) === baseKey(wanted),
    );
    const name = found?.name ?? wanted.name;
    const what = name ? `base ${name} (${wanted.base})` : `base ${wanted.base}`;
    const parts = partsOf(context, wanted, path);
    if (!found) {
      if (!wanted.api_key)
        problem(
          path,
          `${wanted.base} is not connected. Correct the id, or add api_key: \${NAME} to connect it`,
        );
      const connecting: Connecting = Object.assign(
        {},
        ...parts.map(({ part, value, inPart }) => part.connect(value, inPart)),
      );
      const line = lineOf(path);
      return [
        {
          ...{ on: "base", effect: "create", what, details: [], line, isGrave: false },
          ...{ create: wanted, connecting, path },
        },
      ];
    }
    const differences = parts.flatMap(({ part, value, inPart }) => part.compare(value, found, inPart) ?? []);
    return differences.length === 0 ? [] : [changed(what, found.id, differences, lineOf)];
  });
}

/** The parts that the file has for a base. */
function partsOf({ contract, state, problem }: Context, wanted: ContractBase, path: Path) {
  const workspaces = (contract.workspaces ?? []).map(({ name }) => name);
  return baseParts
    .filter(({ key }) => wanted[key] !== undefined)
    .map((part) => {
      const inPart: PartContext = { path: [...path, part.key], state, workspaces, problem };
      return { part, value: wanted[part.key], inPart };
    });
}

/** One request for all parts of a base that differ, at the first line that does. */
function changed(what: string, id: string, differences: Difference[], lineOf: Context["lineOf"]): PlanStep {
  const change: Changing = Object.assign({}, ...differences.map((one) => one.change));
  return {
    on: "base",
    effect: "change",
    what,
    details: differences.flatMap(({ details }) => details),
    line: Math.min(...differences.flatMap(({ paths }) => paths.map(lineOf))),
    isGrave: differences.some(({ isRebuilding }) => isRebuilding),
    id,
    change,
  };
}

function webhookSteps({ contract, state, lineOf }: Context): PlanStep[] {
  return (contract.alerts?.webhooks ?? []).flatMap((wanted, index): PlanStep[] => {
    const path: Path = ["alerts", "webhooks", index];
    const step = {
      on: "webhook" as const,
      what: `webhook ${wanted.name}`,
      line: lineOf(path),
      isGrave: false,
    };
    const found = state.alerts.webhooks.find(({ name }) => name === wanted.name);
    if (!found) return [{ ...step, effect: "create", details: [], create: wanted, path }];
    const { name: _, url: _url, ...given } = wanted;
    const change = differing(given, found);
    const details = changeDetails(change, found);
    return details.length === 0 ? [] : [{ ...step, effect: "change", details, id: found.id, change }];
  });
}

function memberSteps({ contract, state, lineOf, problem }: Context): PlanStep[] {
  const wanted = Object.entries(contract.alerts?.members ?? {});
  const changes = wanted.flatMap(([email, kinds]) => {
    const path: Path = ["alerts", "members", email];
    const found = state.alerts.members.find((one) => one.email === email);
    if (!found) {
      problem(path, `${email} is not a member. Invite them in the console, or remove the line`);
      return [];
    }
    return shown(kinds) === shown(found.kinds) ? [] : [{ email, path, found, kinds }];
  });
  if (changes.length === 0) return [];
  return [
    {
      on: "members",
      effect: "change",
      what: "e-mail alerts",
      details: changes.map(({ email, found, kinds }) => `${email}: ${shown(found.kinds)} -> ${shown(kinds)}`),
      line: lineOf(changes[0]!.path),
      isGrave: false,
      change: { members: changes.map(({ found, kinds }) => ({ user_id: found.user_id, kinds })) },
    },
  ];
}

/** A list that the file does not have says nothing, and an empty one says that there should be none. */
function removals({ bases, workspaces, alerts }: Contract, state: AccountState): PlanStep[] {
  const gone = (on: "base" | "workspace" | "webhook", name: string, id: string): PlanStep => ({
    ...{ on, effect: "delete", what: `${on} ${name}`, details: [], line: 1, isGrave: true },
    ...{ id, remove: true },
  });
  const listed = {
    bases: bases && new Set(bases.map(baseKey)),
    workspaces: workspaces && new Set(workspaces.map(({ name }) => name)),
    webhooks: alerts?.webhooks && new Set(alerts.webhooks.map(({ name }) => name)),
  };
  return [
    ...state.bases
      .filter(({ base_id, platform }) => listed.bases?.has(baseKey({ base: base_id, platform })) === false)
      .map(({ id, name, base_id }) => gone("base", `${name} (${base_id})`, id)),
    ...state.workspaces
      .filter(({ name }) => listed.workspaces?.has(name) === false)
      .map(({ id, name }) => gone("workspace", name, id)),
    ...state.alerts.webhooks
      .filter(({ name }) => listed.webhooks?.has(name) === false)
      .map(({ id, name }) => gone("webhook", name, id)),
  ];
}
