/** What `basetide.yaml` may say. The parts of a base are in `base-parts`. */
import { z } from "zod";
import { apiFacts } from "../client";
import { baseParts } from "./base-parts";
import { secret } from "./secret";

/** Files of a newer version need a newer command line. */
export const VERSION = 1;

/** The keys that are no parts: they say which base it is, and how to connect it. */
const identity = {
  base: z.string().regex(/^[A-Za-z0-9_-]+$/, "is not the id of a base in Airtable (app…)"),
  /** For people; Airtable decides it. */
  name: z.string().optional(),
  platform: z.string().optional(),
  api_key: secret.optional(),
  /** When the last schema change was seen that this file takes into account. */
  schema_as_of: z.iso.datetime().optional(),
};

const base = z.strictObject({
  ...identity,
  ...Object.fromEntries(baseParts.map(({ key, schema }) => [key, schema.optional()])),
});

const workspace = z.strictObject({
  name: z.string().min(1).max(100),
  plan: z.enum(apiFacts.plans),
  calls_per_month: z.int().min(1).nullable().optional(),
  reserve: z.int().min(0).optional(),
});

const kinds = z.array(z.enum(apiFacts.alertKinds));

const webhook = z.strictObject({
  name: z.string().min(1).max(100),
  url: secret,
  form: z.enum(apiFacts.webhookForms).optional(),
  kinds: kinds.optional(),
  on: z.boolean().optional(),
});

export const contractSchema = z.strictObject({
  version: z.literal(VERSION, `is not a version. This basetide reads version ${VERSION}`),
  workspaces: z.array(workspace).optional(),
  bases: z.array(base).optional(),
  alerts: z
    .strictObject({ members: z.record(z.string(), kinds).optional(), webhooks: z.array(webhook).optional() })
    .optional(),
});

export type ContractBase = z.infer<z.ZodObject<typeof identity>> & { [part: string]: unknown };
export type ContractWorkspace = z.infer<typeof workspace>;
export type ContractWebhook = z.infer<typeof webhook>;
export type Contract = Omit<z.infer<typeof contractSchema>, "bases"> & { bases?: ContractBase[] | undefined };

/** Bases of several platforms may have the same id. */
export function baseKey({ base: id, platform = apiFacts.defaultPlatform }: ContractBase): string {
  return `${platform} ${id}`;
}
