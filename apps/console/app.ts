/** The console's HTTP app: its pages, the management API with its description at `/openapi`, and the health routes. */
import { Elysia } from "elysia";
import { FreshUrls } from "../../core/attachments";
import type { ManagementContext } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { pathOf } from "../../core/http";
import { answerError, healthAnswers } from "../../core/http/service";
import { rateLimiterOf } from "../../core/limiter";
import { requireWritable } from "../../core/postgres";
import { apiLimit } from "./api-limit";
import { assetRoutes } from "./assets";
import { attemptGate } from "./attempt-gate";
import { type Auth, createAuth } from "./auth/auth";
import { downloadRoutes } from "./downloads";
import { formPages } from "./form-pages";
import { mcpRoutes } from "./mcp/route";
import { ApiDescription, type ApiRoute, openApiRoute } from "./openapi";
import { answerPageError, isForPerson } from "./page-error";
import { goTo } from "./page-kit";
import { apiOf } from "./resource-kit/api-routes";
import { resources } from "./resources";
import { attachmentRoutes } from "./routes/attachments";
import { webhookRoutes } from "./routes/hooks";
import { oauthRoutes } from "./routes/oauth";
import { pageRoutes } from "./routes/pages";

export function consoleApp(ctx: ManagementContext, auth: Auth = createAuth(ctx)) {
  const api = new ApiDescription(ctx.config.consoleUrl);
  const limit = apiLimit(ctx.config);
  const attachmentUrls = new FreshUrls({ ...ctx, limiter: rateLimiterOf(ctx) });
  const pagesCtx = { ...ctx, auth, attachmentUrls };
  const refuse = attemptGate(auth);
  const health = healthAnswers({
    config: ctx.config,
    publicUrl: ctx.config.consoleUrl,
    metrics: ctx.metrics,
    ready: () => requireWritable(ctx.db),
  });
  const hidden = { detail: { hide: true } };
  let pageOfForm = formPages([]);
  const app = new Elysia({ name: "console", normalize: false })
    .onRequest(({ request }) => {
      limit(request);
      const page = pageOfForm(request);
      return page === undefined ? refuse(request) : goTo(request, page);
    })
    .onError({ as: "global" }, ({ code, error, request }) =>
      answerConsoleError(
        { log: ctx.log, auth },
        request,
        isForPerson(request) ? error : (wrongMethod(api, request, code) ?? error),
        code,
      ),
    )
    .use(openApiRoute(api))
    .get("/healthz", ({ request }) => health(request), hidden)
    .get("/readyz", ({ request }) => health(request), hidden)
    .get("/metrics", ({ request }) => health(request), hidden)
    .use(resources.map((one) => apiOf(pagesCtx, one)))
    .use(webhookRoutes(ctx))
    .use(attachmentRoutes(ctx, attachmentUrls))
    .use(mcpRoutes(ctx))
    .use(oauthRoutes(pagesCtx))
    .use(assetRoutes())
    .use(downloadRoutes())
    .use(pageRoutes(pagesCtx, api));
  api.describe(app.routes as ApiRoute[]);
  pageOfForm = formPages(app.routes);
  return app;
}

/** A page for people, JSON for programs. */
export function answerConsoleError(
  ctx: Pick<ManagementContext, "log"> & { auth: Auth },
  request: Request,
  error: unknown,
  code: string | number,
): Response | Promise<Response> {
  return isForPerson(request)
    ? answerPageError(ctx, request, error, code)
    : answerError(ctx.log, request, error, code);
}

/** Returns the error for a path of the API that exists with other methods only. */
function wrongMethod(api: ApiDescription, request: Request, code: string | number) {
  if (code !== "NOT_FOUND") return undefined;
  const allow = api.methodsOf(pathOf(request)).join(", ");
  if (allow === "") return undefined;
  const message = `${request.method} is not a method of this address. It has: ${allow}`;
  return new BasetideError("method_not_allowed", message, { details: { allow } });
}
