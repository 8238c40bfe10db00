/** The settings page of a base, with the forms that are not settings: its key, its workspace, and its attachment links. */
import { t } from "elysia";
import { type Base, revokeAttachmentLinks, settingEffect, updateSettings } from "../../../core/control/bases";
import { listWorkspaces } from "../../../core/control/budgets";
import { baseJson } from "../../../core/control/status";
import { NO_WORKSPACE } from "../../../views/base/budget";
import type { RefusedSetting } from "../../../views/base/setting-form";
import { SettingsPage } from "../../../views/base/settings";
import type { FormState } from "../../../views/components";
import { onBase } from "../base-page";
import { inFigures, pageSizeOf } from "../change-figures";
import type { ConsoleContext } from "../page-kit";
import { ofBase, resource } from "../resource-kit/resource";
import * as schemas from "../schemas";
import { cachedShape, cachedTables } from "../shape-cache";

const PAGE = "/bases/:id/settings";
const LINKS = "/bases/:id/attachment-links/revoke";

/** @param refused a setting, or another form of the page, that was rejected */
export async function settingsView(
  ctx: ConsoleContext,
  base: Base,
  { refused, form }: { refused?: RefusedSetting; form?: FormState | undefined },
) {
  const [workspaces, shape] = await Promise.all([
    listWorkspaces(ctx.db, base.accountId),
    cachedTables(ctx, base),
  ]);
  const { api_key: keyError, workspace_id: workspaceError } = form?.errors ?? {};
  return <SettingsPage {...{ base, workspaces, shape, refused, keyError, workspaceError }} />;
}

export const baseSettings = resource({
  tag: "Bases",
  params: schemas.idParams,
  scope: ofBase,
  console: {
    ...onBase("settings"),
    all: { path: PAGE, title: ({ name }) => `Settings · ${name}`, show: settingsView },
  },
})
  .all({
    body: t.Object({ api_key: schemas.apiKey }),
    run: (ctx, base, { api_key: apiKey }) => updateSettings(ctx, base, { apiKey }),
    form: {
      path: "/bases/:id/key",
      fields: {
        api_key: {
          kind: "text",
          label: "API key",
          isSecret: true,
          wrong: "An API key must not contain spaces, only ASCII letters, digits and symbols",
        },
      },
      errorAt: "api_key",
      to: PAGE,
      done: "API key replaced. The new key works and is now in use.",
    },
  })
  .all({
    body: t.Object({ workspace_id: schemas.workspaceId }),
    run: (ctx, base, { workspace_id: workspaceId }) => updateSettings(ctx, base, { workspaceId }),
    form: {
      path: "/bases/:id/workspace",
      fields: { workspace: { kind: "own", label: "Workspace" } },
      read: ({ workspace }) => ({
        errors: {},
        body: { workspace_id: workspace === NO_WORKSPACE ? null : workspace },
      }),
      errorAt: "workspace_id",
      to: PAGE,
      done: "Saved.",
    },
  })
  .all({
    api: `POST /api/v1${LINKS}`,
    summary: "Revoke all attachment links",
    description: "Existing links stop working immediately; a sync writes new ones to the rows.",
    raises: ["conflict"],
    status: 202,
    answer: schemas.base,
    run: async (ctx, base) => baseJson(ctx.db, await revokeAttachmentLinks(ctx, base)),
    form: {
      path: LINKS,
      to: PAGE,
      done: "All previous attachment links no longer work. A sync writes new ones to the rows.",
      async asks(base, ctx) {
        const { tables } = await cachedShape(ctx, base);
        const effect = settingEffect(base, tables, { ownAttachmentUrls: true }, pageSizeOf(ctx, base));
        return {
          title: "Revoke all attachment links?",
          effect: (
            <p>
              All existing links stop working at once. A sync then writes new ones to the rows:{" "}
              {inFigures(effect)}.
            </p>
          ),
          button: "Revoke all attachment links",
          isDanger: true,
          back: PAGE,
        };
      },
    },
  });
