/**
 * Carries out the steps of a plan. Each is idempotent or refused by the service the second time, so two runs at once end
 * in the same account.
 */
import { type ApiClient, ApiFailure, type ApiSchemas, apiFacts, dataOf } from "../client";
import type { Connecting } from "./base-parts";
import { ContractError, type ParsedContract, type Path, type Problem } from "./parse";
import type { ContractWebhook } from "./schema";
import { variableOf } from "./secret";
import { resolveChosen } from "./selection/resolve";
import type { PlanStep } from "./step";

type SecretOf = (reference: string) => string;

/** Returns the values of the environment that the steps need. @throws ContractError if one is missing */
export function resolveSecrets(parsed: ParsedContract, steps: PlanStep[], env: NodeJS.ProcessEnv): SecretOf {
  const problems: Problem[] = [];
  const need = (reference: string | undefined, path: Path) => {
    if (!reference || env[variableOf(reference)]) return;
    const message = `the environment variable ${variableOf(reference)} is not set. Set it, and run the command again`;
    problems.push({ line: parsed.lineOf(path), message });
  };
  for (const step of steps) {
    if (step.on === "base" && "connecting" in step) {
      need(step.create.api_key, [...step.path, "api_key"]);
      const { destination } = step.connecting;
      if (destination?.kind === "external") need(destination.url, [...step.path, "destination", "url"]);
    }
    if (step.on === "webhook" && "create" in step) need(step.create.url, [...step.path, "url"]);
  }
  if (problems.length > 0) throw new ContractError(parsed.file, problems);
  return (reference) => env[variableOf(reference)]!;
}

/**
 * Returns the steps with the selections of new bases by ids. One request for each.
 *
 * @throws ContractError for what such a base does not have, before anything is changed; ApiFailure
 */
export async function resolveSelections(
  client: ApiClient,
  parsed: ParsedContract,
  steps: PlanStep[],
  secretOf: SecretOf,
): Promise<PlanStep[]> {
  const problems: Problem[] = [];
  const resolved = steps.map(async (step): Promise<PlanStep> => {
    if (step.on !== "base" || !("connecting" in step) || !step.connecting.chosen) return step;
    const { chosen, ...connecting } = step.connecting;
    const { base, platform = apiFacts.defaultPlatform, api_key = "" } = step.create;
    const body = { platform, base_id: base, api_key: secretOf(api_key) };
    const available = await dataOf(client.POST("/api/v1/source-tables", { body }));
    const selection = resolveChosen(chosen, available, [...step.path, "selection"], (path, message) =>
      problems.push({ line: parsed.lineOf(path), message }),
    );
    return { ...step, connecting: { ...connecting, selection } };
  });
  const result = await Promise.all(resolved);
  if (problems.length > 0) throw new ContractError(parsed.file, problems);
  return result;
}

/**
 * @returns what the service shows only once: the secret that signs a new webhook's messages
 * @throws ApiFailure
 */
export async function applyStep(
  client: ApiClient,
  step: PlanStep,
  secretOf: SecretOf,
): Promise<string | undefined> {
  if (step.on === "members") await client.PATCH("/api/v1/alerts", { body: step.change });
  else if ("remove" in step) await ignoring("not_found", removeStep(client, step));
  else if (step.on === "workspace") {
    if ("create" in step)
      await ignoring("already_exists", client.POST("/api/v1/workspaces", { body: step.create }));
    else await client.PATCH("/api/v1/workspaces/{id}", { params: pathOf(step.id), body: step.change });
  } else if (step.on === "webhook") {
    if ("create" in step) return createWebhook(client, step.create, secretOf);
    await client.PATCH("/api/v1/alerts/webhooks/{id}", { params: pathOf(step.id), body: step.change });
  } else if ("create" in step) {
    const { base, platform = apiFacts.defaultPlatform, api_key = "" } = step.create;
    const { workspace, chosen: _, ...given } = withUrl(step.connecting, secretOf);
    const inWorkspace = await workspaceId(client, workspace);
    const body = { ...given, ...inWorkspace, platform, base_id: base, api_key: secretOf(api_key) };
    await ignoring("already_exists", client.POST("/api/v1/bases", { body }));
  } else {
    const { workspace, selection, ...change } = step.change;
    const body = { ...change, ...(await workspaceId(client, workspace)) };
    const params = pathOf(step.id);
    // First: what is no longer copied must not be copied by a sync that another setting starts.
    if (selection) await client.PUT("/api/v1/bases/{id}/selection", { params, body: selection });
    if (Object.keys(body).length > 0) await client.PATCH("/api/v1/bases/{id}", { params, body });
  }
  return undefined;
}

const pathOf = (id: string) => ({ path: { id } });

function removeStep(client: ApiClient, { on, id }: Extract<PlanStep, { remove: true }>): Promise<unknown> {
  const params = pathOf(id);
  if (on === "base") return client.DELETE("/api/v1/bases/{id}", { params });
  if (on === "workspace") return client.DELETE("/api/v1/workspaces/{id}", { params });
  return client.DELETE("/api/v1/alerts/webhooks/{id}", { params });
}

function withUrl(connecting: Connecting, secretOf: SecretOf): Connecting {
  const { destination } = connecting;
  if (destination?.kind !== "external") return connecting;
  return { ...connecting, destination: { ...destination, url: secretOf(destination.url) } };
}

/** The id of a workspace, which an earlier step may have created. */
async function workspaceId(
  client: ApiClient,
  name: string | null | undefined,
): Promise<Pick<ApiSchemas["BaseChange"], "workspace_id">> {
  if (name === undefined) return {};
  if (name === null) return { workspace_id: null };
  const all = await dataOf(client.GET("/api/v1/workspaces"));
  const found = all.find((one) => one.name === name);
  if (!found) throw new ApiFailure("not_found", `There is no workspace ${name}`, 404);
  return { workspace_id: found.id };
}

/**
 * Creates a webhook with a name that the account did not have. Names need not be unique to the service, so two runs at
 * the same time may create one each: a run that finds both keeps the first and deletes the other, whichever is its own.
 */
async function createWebhook(
  client: ApiClient,
  wanted: ContractWebhook,
  secretOf: SecretOf,
): Promise<string | undefined> {
  const { on, ...given } = wanted;
  const made = await dataOf(
    client.POST("/api/v1/alerts/webhooks", { body: { ...given, url: secretOf(given.url) } }),
  );
  const all = await dataOf(client.GET("/api/v1/alerts/webhooks"));
  const [first, ...others] = all.filter(({ name }) => name === wanted.name).sort(byAge);
  for (const { id } of others)
    await ignoring("not_found", client.DELETE("/api/v1/alerts/webhooks/{id}", { params: pathOf(id) }));
  if (first?.id !== made.id) return undefined;
  if (on === false) {
    const off = client.PATCH("/api/v1/alerts/webhooks/{id}", { params: pathOf(made.id), body: { on } });
    await ignoring("not_found", off);
  }
  return made.secret;
}

type Webhook = ApiSchemas["Webhook"];

function byAge(one: Webhook, other: Webhook): number {
  return `${one.created_at} ${one.id}` < `${other.created_at} ${other.id}` ? -1 : 1;
}

/** Another run has done the same meanwhile. */
async function ignoring(code: string, call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== code) throw error;
  }
}
