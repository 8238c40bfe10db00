/** All pages of the console. */
import { Elysia } from "elysia";
import type { ApiDescription } from "../../openapi";
import type { ConsoleContext } from "../../page-kit";
import { pagesOf } from "../../resource-kit/page-routes";
import { resources } from "../../resources";
import { accountPages } from "./account";
import { activityPages } from "./activity";
import { baseActions } from "./base-actions";
import { basePages } from "./base-pages";
import { connectClientPages } from "./connect-client";
import { connectPages } from "./connect-pages";
import { dataPages } from "./data-pages";
import { docsPages } from "./docs-pages";
import { landingPage } from "./landing";
import { invitationPage, memberPages } from "./members";
import { namesPages } from "./names-pages";
import { onboardingPages } from "./onboarding";
import { operatorPages } from "./operator-pages";
import { proxyPages } from "./proxy-pages";
import { schemaPages } from "./schema-pages";
import { searchPages } from "./search-pages";
import { selectionPages } from "./selection-pages";
import { signInPages } from "./sign-in";
import { signInServicePages } from "./sign-in-services";
import { signUpPages } from "./sign-up";
import { sqlPages } from "./sql-pages";
import { statusPages } from "./status-pages";
import { themeRoute } from "./theme";
import { twoFactorPages } from "./two-factor";
import { writePages } from "./write-pages";

export function pageRoutes(ctx: ConsoleContext, api: ApiDescription) {
  return new Elysia({ name: "pages", detail: { hide: true } })
    .use(landingPage(ctx))
    .use(docsPages(ctx, api))
    .use(signInPages(ctx))
    .use(signUpPages(ctx))
    .use(invitationPage(ctx))
    .use(accountPages(ctx))
    .use(memberPages(ctx))
    .use(twoFactorPages(ctx))
    .use(signInServicePages(ctx))
    .use(statusPages(ctx))
    .use(activityPages(ctx))
    .use(onboardingPages(ctx))
    .use(searchPages(ctx))
    .use(schemaPages(ctx))
    .use(namesPages(ctx))
    .use(sqlPages(ctx))
    .use(connectPages(ctx))
    .use(connectClientPages(ctx))
    .use(proxyPages(ctx))
    .use(writePages(ctx))
    .use(dataPages(ctx))
    .use(selectionPages(ctx))
    .use(basePages(ctx))
    .use(baseActions(ctx))
    .use(operatorPages(ctx))
    .use(resources.filter((one) => one.console).map((one) => pagesOf(ctx, one)))
    .use(themeRoute(ctx));
}
