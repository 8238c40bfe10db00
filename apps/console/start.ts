/** Starts the console's listener, and ends the deletions that an earlier process began. */
import { finishDeletions, listBases, type ManagementContext } from "../../core/control";
import { listen } from "../../core/http/listen";
import { consoleApp } from "./app";

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
  const listener = listen(consoleApp(ctx), {
    port: options.port ?? ctx.config.consolePort,
    portVariable: "CONSOLE_PORT",
  });
  const deletions = finishDeletions(ctx, () => listBases(ctx.db)).catch((error: unknown) => {
    ctx.log.warn({ error }, "unfinished deletions not looked at");
  });
  return {
    port: listener.port,
    async stop() {
      await listener.stop();
      await deletions;
    },
  };
}
