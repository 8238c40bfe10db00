/** The actions on a base that are no resource: each setting, with the question before one that retypes columns, and the pause. */
import { Elysia } from "elysia";
import {
  type Base,
  type ChangeEffect,
  type RetypingSetting,
  resolveIndexes,
  retypingSettings,
  savedText,
  settingByName,
  settingEffect,
  updateSettings,
} from "../../../../core/control/bases";
import { BasetideError } from "../../../../core/errors";
import { counted } from "../../../../core/format";
import { IndexColumns } from "../../../../views/base/index-form";
import { indexLines, readSetting } from "../../../../views/base/setting-form";
import { ChangedSetting } from "../../../../views/base/settings";
import { Confirm } from "../../../../views/components";
import { isHtmx } from "../../../../views/render";
import { onOneBase } from "../../base-page";
import { pageSizeOf } from "../../change-figures";
import { formResultOf } from "../../form-error";
import { type ConsoleContext, finish, formText, goTo } from "../../page-kit";
import { settingsView } from "../../resources/base-settings";
import { cachedShape } from "../../shape-cache";

export function baseActions(ctx: ConsoleContext) {
  return new Elysia({ name: "base-actions", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/settings/indexes/columns", async ({ page, base, query }) => {
      const { tables } = await cachedShape(ctx, base);
      const table = tables.find(({ name }) => name === query.table);
      if (!table) throw new BasetideError("not_found", `There is no table ${query.table} in this database`);
      return page({ title: "Settings" }, <IndexColumns table={table} />);
    })
    .get("/bases/:id/settings/:name", async ({ request, page, base, basePage, params, query }) => {
      const setting = settingByName(params.name);
      const back = `/bases/${base.id}/settings`;
      const key = setting && retypingSettings.find((one) => one === setting.key);
      // Other settings are saved without a question.
      if (!setting || !key) return goTo(request, back);
      const value = formText(query, "value");
      const isOn = value === "on";
      const { tables } = await cachedShape(ctx, base);
      const effect = settingEffect(base, tables, { [key]: isOn }, pageSizeOf(ctx, base));
      const title = `Turn ${isOn ? "on" : "off"} “${setting.label}”?`;
      const isDialog = isHtmx(request);
      const question = (
        <Confirm
          {...{ title, back, values: { value }, isDialog }}
          effect={<p>{retyped(key, effect, isOn)}</p>}
          button={isOn ? "Turn on" : "Turn off"}
          action={`${back}/${setting.name}`}
        />
      );
      return isDialog ? page({ title }, question) : basePage({ place: "settings", title }, question);
    })
    .post("/bases/:id/settings/:name", async ({ request, page, base, basePage, by, params, body }) => {
      const setting = settingByName(params.name);
      if (!setting?.section) throw new BasetideError("not_found", "This setting does not exist");
      const written = setting.type === "indexes" ? indexesIn(base, body) : formText(body, "value");
      const save = async () => {
        const read = readSetting(setting, written);
        const value = Array.isArray(read) ? await resolveIndexes(ctx, base, read) : read;
        return updateSettings(by, base, { [setting.key]: value });
      };
      if (isHtmx(request)) {
        return page({ title: "Settings" }, <ChangedSetting base={await save()} setting={setting} />);
      }
      const { failed } = await formResultOf(save);
      if (!failed) return finish(request, `/bases/${base.id}/settings`, savedText(setting));
      const { message: error, status } = failed;
      const view = await settingsView(ctx, base, { refused: { name: setting.name, written, error } });
      return basePage({ place: "settings", title: "Settings", status }, view);
    })
    .post("/bases/:id/pause", async ({ request, base, by, body }) => {
      const paused = formText(body, "paused") === "on";
      await updateSettings(by, base, { paused });
      const text = paused ? "Syncing is paused. Your data stays queryable." : "Syncing resumed.";
      return finish(request, `/bases/${base.id}`, text);
    });
}

/** The lines of the form; without any, those that are there, with the one that was chosen and without the removed one. */
function indexesIn({ settings }: Base, body: unknown): string {
  const [table, column, kind, removed] = ["table", "column", "kind", "remove"].map((name) =>
    formText(body, name),
  );
  if (!table && !removed) return formText(body, "value");
  const lines = indexLines(settings.indexes).split("\n");
  return [...lines.filter((line) => line !== removed), table && `${table}.${column} ${kind}`.trim()]
    .filter(Boolean)
    .join("\n");
}

function retyped(key: RetypingSetting, effect: ChangeEffect, isOn: boolean): string {
  const { columns, tables, calls } = effect;
  if (columns === 0) return "No column of this base is affected now.";
  const what = `${counted(columns, "column")} in ${counted(tables, "table")}`;
  const about = `about ${counted(calls, "call")} to Airtable`;
  if (key === "ownAttachmentUrls") return `Links in ${what} are written again; ${about}.`;
  if (key === "attachmentViews") {
    return isOn
      ? `A view is created for each of ${what}, and the tables are read again; ${about}.`
      : `The views over ${what} are dropped. Queries that use them will fail.`;
  }
  return `${what} change${columns === 1 ? "s" : ""} type, and the tables are rebuilt; ${about}. Queries that expect the old type may fail.`;
}
