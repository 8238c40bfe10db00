/**
 * Confirmations: the page, or the dialog, at the address of a form that retypes, rebuilds or deletes something. It says
 * what will happen; only its button sends the form.
 */
import { Elysia } from "elysia";
import { type Account, type CurrentUser, listTokens } from "../../../../core/control/accounts";
import {
  type Base,
  type ChangeEffect,
  getBase,
  type RetypingSetting,
  resyncEffect,
  retypingSettings,
  settingByName,
  settingEffect,
} from "../../../../core/control/bases";
import { BasetideError } from "../../../../core/errors";
import { counted } from "../../../../core/format";
import { AccountFrame } from "../../../../views/account/frame";
import { BaseFrame } from "../../../../views/base/frame";
import { Confirm, type Confirmation } from "../../../../views/components";
import { isHtmx } from "../../../../views/render";
import { answer, type ConsoleContext, formText, goTo, signedIn } from "../../page-kit";
import { cachedShape } from "../../shape-cache";
import { findSqlUser } from "../../sql-user";

export function confirmationPages(ctx: ConsoleContext) {
  const { db } = ctx;
  const find = (id: string, account: Account) => getBase(db, id, account.id);
  const pageSizeOf = (base: Base) =>
    ctx.platforms.find(({ id }) => id === base.platform)?.limits.pageSize ?? USUAL_PAGE;

  return new Elysia({ name: "confirmations", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases/:id/sync", async ({ request, currentUser, account, params }) => {
      const base = await find(params.id, account);
      return askAboutBase(request, currentUser, base, {
        title: `Resync ${base.name || base.sourceBaseId}?`,
        effect: (
          <p>Every record is read from Airtable again: {inFigures(resyncEffect(base, pageSizeOf(base)))}.</p>
        ),
        button: "Resync",
        action: `/bases/${base.id}/sync`,
        back: `/bases/${base.id}`,
      });
    })
    .get("/bases/:id/settings/:name", async ({ request, currentUser, account, params, query }) => {
      const base = await find(params.id, account);
      const setting = settingByName(params.name);
      const back = `/bases/${base.id}/settings`;
      const key = setting && retypingSettings.find((one) => one === setting.key);
      // Other settings are saved without a question.
      if (!setting || !key) return goTo(request, back);
      const value = formText(query, "value");
      const isOn = value === "on";
      const { tables } = await cachedShape(ctx, base);
      const effect = settingEffect(base, tables, { [key]: isOn }, pageSizeOf(base));
      return askAboutBase(request, currentUser, base, {
        title: `Turn ${isOn ? "on" : "off"} “${setting.label}”?`,
        effect: <p>{retyped(key, effect, isOn)}</p>,
        button: isOn ? "Turn on" : "Turn off",
        action: `${back}/${setting.name}`,
        values: { value },
        back,
      });
    })
    .get("/bases/:id/attachment-links/revoke", async ({ request, currentUser, account, params }) => {
      const base = await find(params.id, account);
      const { tables } = await cachedShape(ctx, base);
      const effect = settingEffect(base, tables, { ownAttachmentUrls: true }, pageSizeOf(base));
      return askAboutBase(request, currentUser, base, {
        title: "Revoke all attachment links?",
        effect: (
          <p>
            All existing links stop working at once. A sync then writes new ones to the rows:{" "}
            {inFigures(effect)}.
          </p>
        ),
        button: "Revoke all attachment links",
        action: `/bases/${base.id}/attachment-links/revoke`,
        isDanger: true,
        back: `/bases/${base.id}/settings`,
      });
    })
    .get("/bases/:id/sql-users/:user/rotate", async ({ request, currentUser, account, params }) => {
      const { base, user } = await findSqlUser(db, account.id, params);
      return askAboutBase(request, currentUser, base, {
        title: `Rotate the password of “${user.name}”?`,
        effect: (
          <p>The old password stops working at once. Open connections, and other users, are not affected.</p>
        ),
        button: "Rotate password",
        action: `/bases/${base.id}/sql-users/${user.id}/rotate`,
        isDanger: true,
        back: `/bases/${base.id}/connect?user=${user.id}`,
      });
    })
    .get("/bases/:id/sql-users/:user/revoke", async ({ request, currentUser, account, params }) => {
      const { base, database, user } = await findSqlUser(db, account.id, params);
      return askAboutBase(request, currentUser, base, {
        title: `Revoke the SQL user “${user.name}”?`,
        effect: (
          <p>
            Its connections end, and it can no longer log in. This cannot be undone.
            {database.isWritable
              ? " What it created stays, but its functions, triggers and rules no longer run. The database's own role can read its tables; the activity lists everything."
              : ""}
          </p>
        ),
        button: "Revoke SQL user",
        action: `/bases/${base.id}/sql-users/${user.id}/revoke`,
        isDanger: true,
        back: `/bases/${base.id}/connect`,
      });
    })
    .get("/account/tokens/:id/revoke", async ({ request, currentUser, account, params }) => {
      const token = (await listTokens(db, account.id)).find(({ id }) => id === params.id);
      if (!token) throw new BasetideError("not_found", "This token does not exist");
      return askAboutAccount(request, currentUser, "/account/tokens", {
        title: `Revoke the token “${token.name}”?`,
        effect: <p>Programs that use it lose access at once. This cannot be undone.</p>,
        button: "Revoke token",
        action: `/account/tokens/${token.id}/revoke`,
        isDanger: true,
        back: "/account/tokens",
      });
    });
}

/** For a platform that is not offered any more. */
const USUAL_PAGE = 100;

function askAboutBase(request: Request, currentUser: CurrentUser, base: Base, question: Confirmation) {
  const place =
    (["settings", "connect"] as const).find((one) => question.back.includes(`/${one}`)) ?? "overview";
  const view = isHtmx(request) ? (
    <Confirm {...question} isDialog />
  ) : (
    <BaseFrame base={base} place={place}>
      <Confirm {...question} isDialog={false} />
    </BaseFrame>
  );
  return answer(request, { title: question.title, currentUser, active: "bases", base }, view);
}

const sections = {
  "/account/tokens": "api",
} as const;

function askAboutAccount(
  request: Request,
  currentUser: CurrentUser,
  tab: keyof typeof sections,
  question: Confirmation,
) {
  const view = isHtmx(request) ? (
    <Confirm {...question} isDialog />
  ) : (
    <AccountFrame tab={tab}>
      <Confirm {...question} isDialog={false} />
    </AccountFrame>
  );
  return answer(request, { title: question.title, currentUser, active: sections[tab] }, view);
}

/** `1,021 records in 4 tables, about 15 calls`. */
function inFigures({ tables, records, calls }: ChangeEffect): string {
  return `${counted(records, "record")} in ${counted(tables, "table")}, about ${counted(calls, "call")}`;
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
