/** Starts the console's listener, ends the deletions that an earlier process began, clears away what has expired. */
import {
  finishDeletions,
  fleetMetrics,
  forgetExpired,
  listBases,
  type ManagementContext,
} from "../../core/control";
import { noteAddress } from "../../core/http/client-address";
import { compressed } from "../../core/http/compress";
import { listen } from "../../core/http/listen";
import { withRequestId } from "../../core/request-id";
import { consoleApp } from "./app";
import { createAuth } from "./auth/auth";

export interface RunningConsole {
  port: number;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free one; CONSOLE_PORT unless given
 * @throws BasetideError `port_taken`
 */
export async function startConsole(
  ctx: ManagementContext,
  options: { port?: number } = {},
): Promise<RunningConsole> {
  fleetMetrics(ctx);
  const auth = createAuth(ctx);
  const app = consoleApp(ctx, auth);
  const listener = listen(
    {
      async fetch(request, server) {
        noteAddress(request, server.requestIP(request)?.address);
        return withRequestId(request.headers.get("x-request-id"), async () =>
          compressed(request, await app.fetch(request)),
        );
      },
    },
    { port: options.port ?? ctx.config.consolePort, portVariable: "CONSOLE_PORT" },
  );
  const deletions = finishDeletions(ctx, () => listBases(ctx.db)).catch((error: unknown) => {
    ctx.log.warn({ error }, "unfinished deletions not looked at");
  });
  const clearing = forgetExpired(ctx.db).catch((error: unknown) => {
    ctx.log.warn({ error }, "expired sessions not cleared away");
  });
  return {
    port: listener.port,
    async stop() {
      await listener.stop();
      await Promise.all([deletions, clearing, auth.settled()]);
    },
  };
}
