/**
 * Bases that are being connected: the entries of each step are stored here, so that each step is a page that
 * survives a reload. Keys and URLs are encrypted, and deleted when the base is created.
 */
import { isProblem } from "../../check-result";
import type { Context, Db } from "../../context";
import { BasetideError, conflict, isBasetideError } from "../../errors";
import { newId, rowById } from "../../ids";
import { cleanText, jsonParameter } from "../../postgres";
import { platformById, type SourceBase, type SourceSchema, type SourceSelection } from "../../source";
import type { Base } from "../bases";
import { checkChoice, createBase, type ManagementContext, readSelectableWith } from "../bases";
import type { DatabaseCheck } from "../placement";
import { type Destination, inspectDestination } from "../placement";
import type { BaseSize } from "./base-size";
import { type DraftBudget, draftWorkspace } from "./draft-workspace";
import { checkChanges, checkKey, checkReading, keyOwner } from "./key-check";

/** How long the source's list of bases is cached. */
const CHOICES_LIFE = "1 minute";
/** Per account; the oldest are deleted first. */
const MAX_DRAFTS = 20;

export interface Draft {
  id: string;
  accountId: string;
  platform: string;
  /** Whether a key was given and the source accepted it. */
  hasKey: boolean;
  /** The e-mail address of the user whose key it is, or the id; null if unknown. */
  keyOwner: string | null;
  /** Whether the key may read the feed of changes, which live sync needs; null: unknown. */
  reportsChanges: boolean | null;
  sourceBase: { id: string; name: string } | null;
  /** Of the chosen base. */
  size: BaseSize | null;
  /** Without the URL of an external database, which is encrypted. */
  destination: DraftDestination | null;
  /** What will be copied; null: everything. */
  selection: SourceSelection | null;
  /** The base that was created from the draft. */
  baseId: string | null;
  updatedAt: Date;
}

type DraftDestination =
  | { kind: "new"; region?: string | undefined }
  | { kind: "existing"; database_id: string; schema: string }
  /** `address` is for display: host, port and database. */
  | { kind: "external"; schema: string; address: string; accept_privileges?: boolean | undefined };

/** A base that the draft's key can read. */
export interface Choice extends SourceBase {
  /** The account's base that copies it already. */
  connectedAs: string | null;
}

type DraftContext = Pick<Context, "db" | "secrets">;

/** @throws BasetideError `invalid_request` for an unknown platform */
export async function createDraft(
  ctx: ManagementContext,
  accountId: string,
  platform: string,
): Promise<Draft> {
  platformById(ctx.platforms, platform);
  const { db } = ctx;
  const id = newId("draft");
  await db`
    delete from base_drafts
    where id in (select id from base_drafts where account_id = ${accountId} order by updated_at desc offset ${MAX_DRAFTS})`;
  await db`insert into base_drafts (id, account_id, platform) values (${id}, ${accountId}, ${platform})`;
  return getDraft(db, id, accountId);
}

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function getDraft(db: Db, id: string, accountId: string): Promise<Draft> {
  const find = () => selectDrafts(db, db`id = ${id} and account_id = ${accountId}`);
  return rowById("draft", id, find, "This page has expired. Start again");
}

/** Returns the draft that was changed last and has a key; null if there is none. */
export async function latestDraft(db: Db, accountId: string): Promise<Draft | null> {
  const [draft] = await selectDrafts(
    db,
    db`account_id = ${accountId} and base_id is null and encrypted_api_key is not null
      order by updated_at desc limit 1`,
  );
  return draft ?? null;
}

/** Checks the key at the source, and stores it. @throws BasetideError `source_…` if it cannot be used */
export async function setDraftKey(ctx: ManagementContext, draft: Draft, apiKey: string): Promise<void> {
  const bases = await checkKey(ctx, draft.platform, apiKey);
  if (bases.length === 0) {
    throw new BasetideError(
      "source_forbidden",
      "The key has access to no bases. Give it access to one under “Access”, save the token, and try again.",
    );
  }
  const [reportsChanges, owner] = await Promise.all([
    checkChanges(ctx, draft.platform, apiKey, bases),
    keyOwner(ctx, draft.platform, apiKey),
  ]);
  const keepsBase = bases.some((base) => base.id === draft.sourceBase?.id);
  await ctx.db`
    update base_drafts set encrypted_api_key = ${ctx.secrets.encrypt(apiKey, `base_drafts.api_key:${draft.id}`)},
      key_owner = ${owner && cleanText(owner)},
      choices = ${jsonParameter(bases)}::text::jsonb, choices_at = now(), reports_changes = ${reportsChanges},
      source_base_id = case when ${keepsBase} then source_base_id end,
      source_base_name = case when ${keepsBase} then source_base_name end, updated_at = now()
    where id = ${draft.id} and base_id is null`;
}

/**
 * Returns the bases that the draft's key can read, by name; at most a minute old.
 *
 * @throws BasetideError `source_…`
 */
export async function draftChoices(ctx: ManagementContext, draft: Draft): Promise<Choice[]> {
  const [bases, connected] = await Promise.all([
    listedBases(ctx, draft),
    ctx.db<{ id: string; source_base_id: string }[]>`
      select id, source_base_id from bases where account_id = ${draft.accountId} and platform = ${draft.platform}`,
  ]);
  const connectedAs = new Map(connected.map((base) => [base.source_base_id, base.id]));
  return bases
    .map((base) => ({ ...base, connectedAs: connectedAs.get(base.id) ?? null }))
    .sort((a, b) => a.name.localeCompare(b.name, "en"));
}

/** @throws BasetideError `source_…` if the key cannot read it, `already_exists` if it is connected */
export async function setDraftBase(
  ctx: ManagementContext,
  draft: Draft,
  sourceBaseId: string,
): Promise<void> {
  const choice = (await draftChoices(ctx, draft)).find((base) => base.id === sourceBaseId);
  if (!choice)
    throw new BasetideError("source_not_found", "Choose one of the bases that the key has access to");
  if (choice.connectedAs) throw new BasetideError("already_exists", `${choice.name} is already connected`);
  const size = await checkReading(ctx, draft.platform, await openKey(ctx, draft), sourceBaseId);
  await ctx.db`
    update base_drafts set source_base_id = ${choice.id}, source_base_name = ${cleanText(choice.name)},
      source_size = ${JSON.stringify(size)}::text::jsonb,
      selection = case when source_base_id = ${choice.id} then selection end, updated_at = now()
    where id = ${draft.id} and base_id is null`;
}

/**
 * Checks the destination, and stores it if it can be used.
 *
 * @returns the results of the checks; if one is a problem, nothing was stored
 * @throws BasetideError `destination_invalid`, `not_found`, `already_exists`
 */
export async function setDraftDestination(
  ctx: ManagementContext,
  draft: Draft,
  destination: Destination,
): Promise<DatabaseCheck[]> {
  const checks = await inspectDestination(ctx, draft.accountId, destination);
  if (checks.some(isProblem)) return checks;
  const isExternal = destination.kind === "external";
  const kept: DraftDestination = isExternal
    ? {
        kind: "external",
        schema: destination.schema ?? "public",
        address: addressOf(destination.url),
        accept_privileges: destination.accept_privileges,
      }
    : destination;
  await ctx.db`
    update base_drafts set destination = ${JSON.stringify(kept)}::text::jsonb,
      encrypted_url = ${isExternal ? ctx.secrets.encrypt(destination.url, `base_drafts.url:${draft.id}`) : null},
      updated_at = now()
    where id = ${draft.id} and base_id is null`;
  return checks;
}

/**
 * Creates the base and deletes the draft's secrets. Idempotent: a second request returns the base of the first.
 *
 * @throws BasetideError `conflict` if a step is missing, `not_found` for a workspace that is not the account's, and
 *   as `createBase`
 */
export async function finishDraft(
  ctx: ManagementContext,
  draft: Draft,
  budget: DraftBudget = { kind: "none" },
): Promise<string> {
  if (draft.baseId !== null) return draft.baseId;
  const { sourceBase } = draft;
  if (!sourceBase || !draft.destination) throw conflict("Complete the previous step first");
  const apiKey = await openKey(ctx, draft);
  const destination = await openDestination(ctx, draft.id, draft.destination);
  await using workspace = await draftWorkspace(ctx, draft.accountId, budget);
  const base = await createOrFind(ctx, draft, {
    platform: draft.platform,
    apiKey,
    sourceBaseId: sourceBase.id,
    destination,
    selection: draft.selection ?? undefined,
    workspaceId: workspace.id,
  });
  await ctx.db`
    update base_drafts set base_id = ${base.id}, encrypted_api_key = null, encrypted_url = null, choices = null,
      updated_at = now()
    where id = ${draft.id}`;
  return base.id;
}

/** Checks the stored key again: its owner may have added a scope. @throws BasetideError as `setDraftKey` */
export async function recheckDraftKey(ctx: ManagementContext, draft: Draft): Promise<void> {
  await setDraftKey(ctx, draft, await openKey(ctx, draft));
}

/**
 * Returns what of the chosen base can be copied.
 *
 * @throws BasetideError `conflict` if no base is chosen, `source_…`, `quota_timeout`
 */
export async function draftSelectable(ctx: ManagementContext, draft: Draft): Promise<SourceSchema> {
  const { platform, sourceBase } = draft;
  if (!sourceBase) throw conflict("Choose a base first");
  const apiKey = await openKey(ctx, draft);
  return readSelectableWith(ctx, { platform, sourceBaseId: sourceBase.id, apiKey }, "client");
}

/**
 * Stores what will be copied once the base is connected.
 *
 * @param schema of the source, just read
 * @throws BasetideError `invalid_request`, as `checkSelection`
 */
export async function setDraftSelection(
  { db }: Pick<Context, "db">,
  draft: Draft,
  asked: SourceSelection,
  schema: SourceSchema,
): Promise<void> {
  const { selection } = checkChoice(asked, schema, draft.selection);
  await db`
    update base_drafts set selection = ${selection && jsonParameter(selection)}::text::jsonb, updated_at = now()
    where id = ${draft.id} and base_id is null`;
}

/** Returns the source's list from a short cache, so that typing in the search box does not cost a call per letter. */
async function listedBases(ctx: ManagementContext, draft: Draft): Promise<SourceBase[]> {
  const [kept] = await ctx.db<{ choices: SourceBase[] }[]>`
    select choices from base_drafts
    where id = ${draft.id} and choices is not null and choices_at > now() - ${CHOICES_LIFE}::interval`;
  if (kept) return kept.choices;
  const bases = await checkKey(ctx, draft.platform, await openKey(ctx, draft));
  await ctx.db`
    update base_drafts set choices = ${jsonParameter(bases)}::text::jsonb, choices_at = now() where id = ${draft.id}`;
  return bases;
}

async function createOrFind(
  ctx: ManagementContext,
  draft: Draft,
  base: Parameters<typeof createBase>[2],
): Promise<Pick<Base, "id">> {
  try {
    return await createBase(ctx, draft.accountId, base);
  } catch (error) {
    const [found] = isBasetideError(error, "already_exists")
      ? await ctx.db<{ id: string }[]>`
          select id from bases where account_id = ${draft.accountId} and platform = ${base.platform}
            and source_base_id = ${base.sourceBaseId}`
      : [];
    if (!found) throw error;
    return found;
  }
}

async function openDestination(ctx: DraftContext, id: string, kept: DraftDestination): Promise<Destination> {
  if (kept.kind !== "external") return kept;
  const [row] = await ctx.db<
    { encrypted_url: string | null }[]
  >`select encrypted_url from base_drafts where id = ${id}`;
  if (!row?.encrypted_url) throw conflict("The destination no longer exists");
  return {
    kind: "external",
    schema: kept.schema,
    accept_privileges: kept.accept_privileges,
    url: ctx.secrets.decrypt(row.encrypted_url, `base_drafts.url:${id}`),
  };
}

async function openKey(ctx: DraftContext, draft: Draft): Promise<string> {
  const [row] = await ctx.db<{ encrypted_api_key: string | null }[]>`
    select encrypted_api_key from base_drafts where id = ${draft.id}`;
  if (!row?.encrypted_api_key) throw conflict("Enter the API key first");
  return ctx.secrets.decrypt(row.encrypted_api_key, `base_drafts.api_key:${draft.id}`);
}

async function selectDrafts(db: Db, where: ReturnType<Db>): Promise<Draft[]> {
  const rows = await db<(Omit<Draft, "sourceBase"> & { base: string | null; name: string | null })[]>`
    select id, account_id as "accountId", platform, encrypted_api_key is not null as "hasKey",
      key_owner as "keyOwner",
      reports_changes as "reportsChanges", source_base_id as base, source_base_name as name, source_size as size,
      -- A database may be gone since it was chosen, with its last base.
      case when destination ->> 'kind' <> 'existing'
        or exists (select from databases as d where d.id = destination ->> 'database_id') then destination end as destination,
      selection, base_id as "baseId",
      updated_at as "updatedAt"
    from base_drafts where ${where}`;
  return rows.map(({ base, name, ...draft }) => ({
    ...draft,
    sourceBase: base === null ? null : { id: base, name: name ?? base },
  }));
}

function addressOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
