/** A step of a plan: one request to the API, and what it is for. */
import type { ApiSchemas } from "../client";
import type { Changing, Connecting } from "./base-parts";
import type { Path } from "./parse";
import type { ContractBase, ContractWebhook, ContractWorkspace } from "./schema";

export type PlanStep = {
  effect: "create" | "change" | "delete";
  /** For people: `base Project Tracker (app…)`. */
  what: string;
  /** `settings.live: false -> true` */
  details: string[];
  line: number;
  /** Tables are read again, or something is deleted: asked before. */
  isGrave: boolean;
} & PlannedRequest;

type PlannedRequest =
  | { on: "base"; create: ContractBase; connecting: Connecting; path: Path }
  | { on: "base"; id: string; change: Changing }
  | { on: "workspace"; create: ContractWorkspace }
  | { on: "workspace"; id: string; change: ApiSchemas["WorkspaceChange"] }
  | { on: "webhook"; create: ContractWebhook; path: Path }
  | { on: "webhook"; id: string; change: ApiSchemas["WebhookChange"] }
  | { on: "members"; change: ApiSchemas["AlertsChange"] }
  | { on: "base" | "workspace" | "webhook"; id: string; remove: true };
