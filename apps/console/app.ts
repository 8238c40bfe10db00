/** The console's HTTP app: its pages, the management API with its description at `/openapi`, and the health routes. */
import openapi from "@elysiajs/openapi";
import { Elysia } from "elysia";
import type { ManagementContext } from "../../core/control/bases";
import { answerError, healthRoutes } from "../../core/http/service";
import { requireWritable } from "../../core/postgres";
import { version } from "../../package.json" with { type: "json" };
import { apiLimit } from "./api-limit";
import { assetRoutes } from "./assets";
import { attemptGate } from "./attempt-gate";
import { type Auth, createAuth } from "./auth/auth";
import { downloadRoutes } from "./downloads";
import { answerPageError, isForPerson } from "./page-error";
import { alertRoutes } from "./routes/alerts";
import { attachmentRoutes } from "./routes/attachments";
import { auditRoutes } from "./routes/audit";
import { baseRoutes } from "./routes/bases";
import { credentialRoutes } from "./routes/credentials";
import { destinationRoutes } from "./routes/destinations";
import { analystRoutes } from "./routes/exports";
import { webhookRoutes } from "./routes/hooks";
import { memberRoutes } from "./routes/members";
import { pageRoutes } from "./routes/pages";
import { requestRoutes } from "./routes/requests";
import { schemaChangeRoutes } from "./routes/schema-changes";
import { sourceRoutes } from "./routes/sources";
import { workspaceRoutes } from "./routes/workspaces";

export function consoleApp(ctx: ManagementContext, auth: Auth = createAuth(ctx)) {
  const limit = apiLimit(ctx.config);
  const refuse = attemptGate(auth);
  return new Elysia({ name: "console", normalize: false })
    .onRequest(({ request }) => {
      limit(request);
      return refuse(request);
    })
    .onError({ as: "global" }, ({ code, error, request }) =>
      isForPerson(request)
        ? answerPageError({ log: ctx.log, auth }, request, error, code)
        : answerError(ctx.log, request, error, code),
    )
    .use(apiDescription(ctx.config.consoleUrl))
    .use(
      healthRoutes({
        config: ctx.config,
        metrics: ctx.metrics,
        ready: () => requireWritable(ctx.db),
      }),
    )
    .use(sourceRoutes(ctx))
    .use(destinationRoutes(ctx))
    .use(baseRoutes(ctx))
    .use(workspaceRoutes(ctx))
    .use(schemaChangeRoutes(ctx))
    .use(analystRoutes(ctx))
    .use(credentialRoutes(ctx))
    .use(requestRoutes(ctx))
    .use(webhookRoutes(ctx))
    .use(attachmentRoutes(ctx))
    .use(auditRoutes(ctx))
    .use(memberRoutes(ctx))
    .use(alertRoutes(ctx))
    .use(assetRoutes())
    .use(downloadRoutes())
    .use(pageRoutes({ ...ctx, auth }));
}

/** Serves only the OpenAPI document: the plugin's ready-made pages load their scripts from other hosts. */
function apiDescription(consoleUrl: string) {
  return openapi({
    provider: null,
    specPath: "/openapi",
    documentation: {
      info: {
        title: "Basetide management API",
        version,
        description:
          'Errors of every call: `{"error":{"code","message","request_id"}}`; 401 without a token, 404 for what is not yours, 422 for what cannot be used.',
      },
      servers: [{ url: consoleUrl }],
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
      security: [{ token: [] }],
    },
  });
}
