/** Stores the color theme, for visitors, too, and returns to the page. */
import { Elysia } from "elysia";
import { themeCookie } from "../../cookies";
import { anyone, type ConsoleContext, formText, goTo, ownPath } from "../../page-kit";

export function themeRoute(ctx: ConsoleContext) {
  return new Elysia({ detail: { hide: true } }).use(anyone(ctx)).post("/theme", ({ request, body }) => {
    const from = URL.parse(request.headers.get("referer") ?? "");
    const cookie = themeCookie(formText(body, "theme"), ctx.config.consoleUrl);
    return goTo(request, ownPath(from && from.pathname + from.search), new Headers({ "set-cookie": cookie }));
  });
}
