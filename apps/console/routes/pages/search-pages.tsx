/** The search over the account: the palette's options, and a page that needs no script. */
import { Elysia } from "elysia";
import { isHtmx } from "../../../../views/render";
import { SearchOptions, SearchPage } from "../../../../views/search/results";
import { type ConsoleContext, signedIn } from "../../page-kit";
import { readSearch, search } from "../../search/search";

export function searchPages(ctx: ConsoleContext) {
  return new Elysia({ name: "search-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/search", async ({ request, currentUser, page, query }) => {
      const asked = readSearch(query);
      const isLong = !isHtmx(request);
      const groups = await search(ctx.db, currentUser, asked, { isLong });
      const results = { query: asked.query, groups };
      const view = isLong ? <SearchPage {...results} /> : <SearchOptions {...results} />;
      return page({ title: "Search", active: "search" }, view);
    });
}
