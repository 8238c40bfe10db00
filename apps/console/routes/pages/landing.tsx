/** The first page: the landing page for visitors, the bases for signed-in users. */
import { Elysia } from "elysia";
import { renderPage } from "../../../../views/render";
import { SitePage } from "../../../../views/site/frame";
import { Landing } from "../../../../views/site/landing";
import { siteAssetUrls } from "../../assets";
import { themeOf } from "../../cookies";
import { anyone, type ConsoleContext, goTo } from "../../page-kit";

const TITLE = "Basetide: your Airtable base, live in Postgres";
const DESCRIPTION =
  "A live, read-only Postgres copy of your Airtable bases, and a proxy that shows each write in SQL at once.";

export function landingPage(ctx: ConsoleContext) {
  const canSignUp = ctx.config.signUps === "open";
  return new Elysia({ detail: { hide: true } }).use(anyone(ctx)).get("/", ({ request, currentUser }) => {
    if (currentUser) return goTo(request, "/bases");
    return renderPage(
      <SitePage
        title={TITLE}
        description={DESCRIPTION}
        canSignUp={canSignUp}
        theme={themeOf(request)}
        assets={siteAssetUrls}
      >
        <Landing canSignUp={canSignUp} />
      </SitePage>,
    );
  });
}
