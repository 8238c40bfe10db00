/**
 * Starts a sandbox: a server that answers like `api.airtable.com` and `content.airtable.com`, on one port.
 *
 * ```ts
 * await using sandbox = await startSandbox({ port: 0 });
 * const baseId = sandbox.control.generate({ records: 1000, tables: 3, seed: 1 });
 * ```
 */
import http from "node:http";
import { DEFAULT_KEY } from "./auth";
import { Control } from "./control";
import { handleControl } from "./control-routes";
import { handleApi, targetOf } from "./http";
import { Sandbox } from "./sandbox";
import type { SettingsPatch } from "./settings";

export { DEFAULT_KEY } from "./auth";
export type { Control, Dump } from "./control";

export interface SandboxOptions {
  /** 0 takes a free one. */
  port?: number;
  /** `127.0.0.1` if absent. */
  hostname?: string;
  settings?: SettingsPatch;
}

export interface SandboxHandle extends AsyncDisposable {
  /** Without a slash at the end. */
  url: string;
  port: number;
  /** Opens every base of this sandbox. */
  key: string;
  control: Control;
  stop(): Promise<void>;
}

/** URLs may be 16,000 characters long, and headers come on top. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Ten records with long texts, and uploads in base64. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** @throws Error in one line if the port is taken */
export async function startSandbox(options: SandboxOptions = {}): Promise<SandboxHandle> {
  const { port = 0, hostname = "127.0.0.1", settings } = options;
  const sandbox = new Sandbox();
  if (settings) sandbox.set(settings);
  const control = new Control(sandbox);
  // Bun.serve goes by it; its type says read-only, Bun's documentation says that it can be set.
  Object.assign(http, { maxHeaderSize: MAX_HEADER_BYTES });
  const server = serve(sandbox, control, hostname, port);
  const shownHost = hostname === "0.0.0.0" ? "localhost" : hostname;
  const url = `http://${shownHost}:${server.port}`;
  sandbox.attachments.origin = url;
  const stop = () => {
    sandbox.webhooks.clear();
    return server.stop(true);
  };
  return { url, port: server.port!, key: DEFAULT_KEY, control, stop, [Symbol.asyncDispose]: stop };
}

function serve(sandbox: Sandbox, control: Control, hostname: string, port: number) {
  try {
    return Bun.serve({
      port,
      hostname,
      // Slow answers are part of what is simulated.
      idleTimeout: 0,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch: (request) => route(sandbox, control, request),
      error: (error) => {
        console.error("The sandbox failed at a request:", error);
        return Response.json({ error: { type: "SERVER_ERROR", message: String(error) } }, { status: 500 });
      },
    });
  } catch (cause) {
    if ((cause as { code?: string }).code !== "EADDRINUSE") throw cause;
    throw new Error(`Port ${port} is taken. Stop the program that holds it, or set SANDBOX_PORT.`, { cause });
  }
}

function route(sandbox: Sandbox, control: Control, request: Request): Response | Promise<Response> {
  const target = targetOf(request);
  switch (target.root) {
    case "v0":
      return handleApi(sandbox, request, target);
    case "_sandbox":
      return handleControl(control, request, target);
    case "v3":
      return attachmentBytes(sandbox, target.segments);
    case "healthz":
      return new Response("ok\n");
    default:
      return Response.json({ error: "NOT_FOUND" }, { status: 404 });
  }
}

/** `/v3/u/{token}/{attachment}/{name}`: what stands behind an attachment's URL. */
function attachmentBytes(sandbox: Sandbox, [, token = "", id = ""]: string[]): Response {
  const check = sandbox.attachments.check(token);
  if (check === "forged") return new Response("Forbidden\n", { status: 403 });
  if (check === "expired") return new Response("Gone\n", { status: 410 });
  return new Response(sandbox.attachments.bytes(id) as Uint8Array<ArrayBuffer>);
}
