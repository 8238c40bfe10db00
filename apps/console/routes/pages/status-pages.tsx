/** The public status page of an account, at a link that cannot be guessed, and the page that turns it on. */
import { Elysia } from "elysia";
import {
  newStatusPage,
  publicStatus,
  statusToken,
  turnOffStatusPage,
} from "../../../../core/control/history";
import { BasetideError } from "../../../../core/errors";
import { StatusSettings } from "../../../../views/account/status";
import { StatusPageView } from "../../../../views/status-page";
import { answer, type ConsoleContext, finish, formText, signedIn } from "../../page-kit";
import { TimedCache } from "../../timed-cache";

/** A public page may be opened by many at once: they share one answer for so long, ms. */
const SHARED_MS = 5000;

const done: Record<string, string> = {
  on: "The status page is on. Everyone with the link can open it.",
  renew: "The status page has a new link. The previous one no longer works.",
  off: "The status page is off. Its link no longer works.",
};

export function statusPages(ctx: ConsoleContext) {
  const { config, db } = ctx;
  const find = publicStatus(db);
  const shared = new TimedCache<Awaited<ReturnType<typeof find>>>({ keptMs: SHARED_MS, most: 500 });

  const ofEveryone = new Elysia({ name: "public-status", detail: { hide: true } }).get(
    "/status/:token",
    async ({ request, params }) => {
      const page = await shared.get(params.token, () => find(params.token));
      if (!page) throw new BasetideError("not_found", "This status page does not exist, or was turned off");
      return answer(request, { title: "Status", headers: NO_REFERRER }, <StatusPageView {...page} />);
    },
  );
  const ofAccount = new Elysia({ prefix: "/account/status", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", async ({ page, account }) => {
      const token = await statusToken(db, account.id);
      const url = token === null ? null : `${config.consoleUrl}/status/${token}`;
      return page({ title: "Status page", active: "settings" }, <StatusSettings url={url} />);
    })
    .post("", async ({ request, account: { id }, by: { actor }, body }) => {
      const change = formText(body, "change");
      const said = Object.hasOwn(done, change) ? done[change] : undefined;
      if (said === undefined) throw new BasetideError("invalid_request", "Choose on, renew or off");
      await (change === "off" ? turnOffStatusPage : newStatusPage)(ctx, id, actor);
      shared.clear();
      return finish(request, "/account/status", said);
    });
  return new Elysia({ name: "status-pages", detail: { hide: true } }).use(ofEveryone).use(ofAccount);
}

/** The link is the key: no other site may learn it from a visitor. */
const NO_REFERRER = { "referrer-policy": "no-referrer" };
