/**
 * Starts the console's listener. In the background, finishes deletions that earlier processes began, and deletes
 * expired rows.
 */

import { type ManagementContext, startFinishing } from "../../core/control/bases";
import { fleetMetrics, startReports } from "../../core/control/fleet";
import { closeReaders } from "../../core/control/placement";
import { compressed, listen, pathOf, SharedBodies } from "../../core/http";
import { withRequestId } from "../../core/request-id";
import { securityHeaders } from "../../views/render";
import { answerConsoleError, consoleApp } from "./app";
import { type Auth, createAuth } from "./auth/auth";
import { ControlWatch } from "./control-watch";

/** Static files, and the checks of the process, which have time limits of their own. */
const NEEDS_NO_DATABASE = /^\/(assets\/|healthz$|readyz$|metrics$)/;

export interface RunningConsole {
  port: number;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free port; default CONSOLE_PORT
 * @param options.auth for tests
 * @throws BasetideError `port_taken`
 */
export async function startConsole(
  ctx: ManagementContext,
  options: { port?: number; auth?: Auth } = {},
): Promise<RunningConsole> {
  fleetMetrics(ctx);
  const auth = options.auth ?? createAuth(ctx);
  const app = consoleApp(ctx, auth);
  const watch = new ControlWatch(ctx.db);
  async function answer(request: Request): Promise<Response> {
    if (NEEDS_NO_DATABASE.test(pathOf(request))) return app.fetch(request);
    try {
      return await watch.answered(async () => app.fetch(request));
    } catch (error) {
      return answerConsoleError({ log: ctx.log, auth }, request, error, "UNKNOWN");
    }
  }
  const listener = listen(
    {
      async fetch(request) {
        return withRequestId(request.headers.get("x-request-id"), async () =>
          compressed(request, await answer(request)),
        );
      },
    },
    {
      port: options.port ?? ctx.config.consolePort,
      portVariable: "CONSOLE_PORT",
      host: ctx.config.host,
      bodies: new SharedBodies(ctx.config.clientIpHeader),
      publicUrl: ctx.config.consoleUrl,
      ownHeaders: securityHeaders,
      log: ctx.log,
    },
  );
  const finishing = startFinishing(ctx);
  const reports = startReports(ctx.db, "console");
  return {
    port: listener.port,
    async stop() {
      await listener.stop();
      await Promise.all([reports.stop(), finishing.stop(), auth.settled(), closeReaders()]);
    },
  };
}
