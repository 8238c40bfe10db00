/** The actions on a base: settings, key, pause, resync, a new password, deletion. */

import { Elysia } from "elysia";
import { type Account, actorOf, type CurrentUser } from "../../../../core/control/accounts";
import {
  type Base,
  deleteBase,
  getBase,
  recheckFeed,
  requestResync,
  resolveIndexes,
  revokeAttachmentLinks,
  savedText,
  settingByName,
  updateSettings,
} from "../../../../core/control/bases";
import { getWorkspace, listWorkspaces } from "../../../../core/control/budgets";
import { getDatabase, rotateCredentials } from "../../../../core/control/placement";
import { BasetideError, httpStatus, isBasetideError } from "../../../../core/errors";
import { NO_WORKSPACE } from "../../../../views/base/budget";
import { DeletePage, nameToType } from "../../../../views/base/delete";
import { BaseFrame } from "../../../../views/base/frame";
import { IndexColumns } from "../../../../views/base/index-form";
import { readSetting } from "../../../../views/base/setting-form";
import { ChangedSetting, SettingsPage, type SettingsProps } from "../../../../views/base/settings";
import { isHtmx } from "../../../../views/render";
import { formErrorOf } from "../../form-error";
import { answer, type ConsoleContext, finish, formSecret, formText, signedIn } from "../../page-kit";
import { cachedShape, cachedTables } from "../../shape-cache";

export function baseActions(ctx: ConsoleContext) {
  const { db } = ctx;
  const by = (currentUser: CurrentUser) => ({ ...ctx, actor: actorOf(currentUser) });
  const find = (id: string, account: Account) => getBase(db, id, account.id);
  const databaseOf = (base: Base) => getDatabase(db, base.database.id);

  async function settingsPage(
    { request, currentUser, account }: { request: Request; currentUser: CurrentUser; account: Account },
    base: Base,
    { status, ...shown }: Partial<SettingsProps> & { status?: number } = {},
  ) {
    const [workspaces, shape] = await Promise.all([listWorkspaces(db, account.id), cachedTables(ctx, base)]);
    return answer(
      request,
      {
        title: `Settings · ${base.name}`,
        currentUser,
        active: "bases",
        base,
        ...(status === undefined ? {} : { status }),
      },
      <BaseFrame base={base} place="settings">
        <SettingsPage base={base} workspaces={workspaces} shape={shape} {...shown} />
      </BaseFrame>,
    );
  }

  return new Elysia({ name: "base-actions", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases/:id/settings", async ({ request, currentUser, account, params }) =>
      settingsPage({ request, currentUser, account }, await find(params.id, account)),
    )
    .get("/bases/:id/settings/indexes/columns", async ({ request, currentUser, account, params, query }) => {
      const { tables } = await cachedShape(ctx, await find(params.id, account));
      const table = tables.find(({ name }) => name === query.table);
      if (!table) throw new BasetideError("not_found", `There is no table ${query.table} in this database`);
      return answer(request, { title: "Settings", currentUser }, <IndexColumns table={table} />);
    })
    .post("/bases/:id/settings/:name", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const setting = settingByName(params.name);
      if (!setting?.section) throw new BasetideError("not_found", "This setting does not exist");
      const written = setting.type === "indexes" ? indexesIn(body) : formText(body, "value");
      const save = async () => {
        const read = readSetting(setting, written);
        const value = Array.isArray(read) ? await resolveIndexes(ctx, base, read) : read;
        return updateSettings(by(currentUser), base, { [setting.key]: value });
      };
      if (isHtmx(request)) {
        const view = <ChangedSetting base={await save()} setting={setting} />;
        return answer(request, { title: "Settings", currentUser }, view);
      }
      const formError = await formErrorOf(save);
      if (!formError) return finish(request, `/bases/${base.id}/settings`, savedText(setting));
      const refused = { name: setting.name, written, error: formError.message };
      return settingsPage({ request, currentUser, account }, base, { refused, status: formError.status });
    })
    .post("/bases/:id/turbo", async ({ request, currentUser, account, params }) => {
      const base = await find(params.id, account);
      await updateSettings(by(currentUser), base, { turbo: true });
      return finish(request, `/bases/${base.id}`, "Turbo is on. You can turn it off in Settings.");
    })
    .post("/bases/:id/attachment-links/revoke", async ({ request, currentUser, account, params }) => {
      const base = await revokeAttachmentLinks(by(currentUser), await find(params.id, account));
      const text = "All previous attachment links no longer work. A sync writes new ones to the rows.";
      return finish(request, `/bases/${base.id}/settings`, text);
    })
    .post("/bases/:id/workspace", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const chosen = formText(body, "workspace");
      const formError = await formErrorOf(async () => {
        const workspace = chosen === NO_WORKSPACE ? null : await getWorkspace(db, chosen, account.id);
        await updateSettings(by(currentUser), base, { workspaceId: workspace?.id ?? null });
      });
      if (!formError) return finish(request, `/bases/${base.id}/settings`, "Saved.");
      return settingsPage({ request, currentUser, account }, base, {
        workspaceError: formError.message,
        status: formError.status,
      });
    })
    .post("/bases/:id/key", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      try {
        await updateSettings(by(currentUser), base, { apiKey: checkKey(formText(body, "api_key")) });
      } catch (error) {
        if (!isBasetideError(error)) throw error;
        return settingsPage({ request, currentUser, account }, base, {
          keyError: error.message,
          status: httpStatus[error.code],
        });
      }
      const text = "API key replaced. The new key works and is now in use.";
      return finish(request, `/bases/${base.id}/settings`, text);
    })
    .post("/bases/:id/pause", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const paused = formText(body, "paused") === "on";
      await updateSettings(by(currentUser), base, { paused });
      const text = paused ? "Syncing is paused. Your data stays queryable." : "Syncing resumed.";
      return finish(request, `/bases/${base.id}`, text);
    })
    .post("/bases/:id/sync", async ({ request, currentUser, account, params }) => {
      const base = await requestResync(by(currentUser), await find(params.id, account));
      return finish(request, `/bases/${base.id}`, "Resync requested. It starts in a moment.");
    })
    .post("/bases/:id/live/check", async ({ request, currentUser, account, params }) => {
      const base = await find(params.id, account);
      await recheckFeed(by(currentUser), base);
      return finish(
        request,
        `/bases/${base.id}`,
        "Asking Airtable again. The result shows here in a moment.",
      );
    })
    .post("/bases/:id/connect/rotate", async ({ request, currentUser, account, params }) => {
      const base = await find(params.id, account);
      await rotateCredentials(by(currentUser), await databaseOf(base));
      const text = "Password rotated. The old password no longer works.";
      return finish(request, `/bases/${base.id}/connect`, text);
    })
    .get("/bases/:id/delete", async ({ request, currentUser, account, params }) => {
      const base = await find(params.id, account);
      return answer(
        request,
        { title: `Delete ${base.name}`, currentUser, active: "bases", base },
        <BaseFrame base={base} place="settings">
          <DeletePage base={base} isHosted={(await databaseOf(base)).clusterId !== null} />
        </BaseFrame>,
      );
    })
    .post("/bases/:id/delete", async ({ request, currentUser, account, params, body }) => {
      const base = await find(params.id, account);
      const typed = formSecret(body, "name").replace(/\s+/g, " ").trim();
      if (typed === nameToType(base)) {
        await deleteBase(by(currentUser), base);
        return finish(request, "/bases", `${base.name || base.sourceBaseId} is being deleted.`);
      }
      return answer(
        request,
        { title: `Delete ${base.name}`, currentUser, active: "bases", base, status: 422 },
        <BaseFrame base={base} place="settings">
          <DeletePage
            base={base}
            isHosted={(await databaseOf(base)).clusterId !== null}
            typed={typed}
            error="This is not the name of the base"
          />
        </BaseFrame>,
      );
    });
}

/** The lines of the form, and the column that was chosen from its lists. */
function indexesIn(body: unknown): string {
  const [lines, table, column, kind] = ["value", "table", "column", "kind"].map((name) =>
    formText(body, name),
  );
  return [lines, table && `${table}.${column} ${kind}`.trim()].filter(Boolean).join("\n");
}

/** Checks the format as the management API does: text that cannot be a key is not sent to the source. */
function checkKey(key: string): string {
  if (/^[!-~]{1,1000}$/.test(key)) return key;
  throw new BasetideError(
    "invalid_request",
    "An API key must not contain spaces, only ASCII letters, digits and symbols",
  );
}
