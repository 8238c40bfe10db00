/**
 * Starts a sandbox: a server that answers like `api.airtable.com` and `content.airtable.com`, on one port.
 *
 * ```ts
 * await using sandbox = await startSandbox({ port: 0 });
 * const baseId = sandbox.control.generate({ records: 1000, tables: 3, seed: 1 });
 * ```
 *
 * With a network, clients reach it over TLS through a relay (`network/`); the control API bypasses the relay.
 */
import http from "node:http";
import { createAuthority, type Listener, listen, portError } from "../../core/http";
import { DEFAULT_KEY } from "./auth";
import { Control } from "./control";
import { handleControl } from "./control-routes";
import { handleApi, targetOf } from "./http";
import { LOOPBACK, mergeProfile, Network, type NetworkProfile } from "./network";
import { Sandbox } from "./sandbox";
import type { SettingsPatch } from "./settings";

export { DEFAULT_KEY } from "./auth";
export type { Dump } from "./dump";

export interface SandboxOptions {
  /** 0 takes a free one. */
  port?: number;
  /** `127.0.0.1` if absent. */
  hostname?: string;
  settings?: SettingsPatch;
  /** Puts a simulated network with this profile between the API and its clients; without it, they use loopback. */
  network?: Partial<NetworkProfile> | undefined;
  /** Whether the API uses TLS. Default: with a network. */
  tls?: boolean | undefined;
}

export interface SandboxHandle extends AsyncDisposable {
  /** The API's URL for clients, without a slash at the end. */
  url: string;
  /** The same without network and TLS, for control and for comparison. */
  controlUrl: string;
  /** The authority's certificate that clients must trust, PEM; empty without TLS. */
  authority: string;
  port: number;
  /** Can read and write every base of this sandbox. */
  key: string;
  control: Control;
  stop(): Promise<void>;
}

/** URLs may have 16,000 characters; headers need more. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Ten records with long texts, and uploads in base64. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

const PORT_VARIABLE = "SANDBOX_PORT";

/** @throws BasetideError `port_taken`; ControlError for invalid settings or an invalid network */
export async function startSandbox(options: SandboxOptions = {}): Promise<SandboxHandle> {
  const { port = 0, hostname = "127.0.0.1", settings } = options;
  const sandbox = new Sandbox();
  if (settings) sandbox.set(settings);
  const control = new Control(sandbox);
  // Bun.serve reads it; its type says read-only, but Bun's documentation says that it can be set.
  Object.assign(http, { maxHeaderSize: MAX_HEADER_BYTES });
  const releases = new AsyncDisposableStack();
  const open = (at: Partial<Parameters<typeof serve>[1]> = {}) => {
    const answer: Answer = (request, port) =>
      route(sandbox, control, request, sandbox.network?.clientPortOf(port) ?? port);
    const server = serve(answer, { host: hostname, port, ...at });
    releases.defer(() => server.stop());
    return server;
  };
  const shownHost = hostname === "0.0.0.0" ? "localhost" : hostname;
  const hasTls = options.tls ?? options.network !== undefined;
  const authority = hasTls ? createAuthority("Basetide sandbox") : undefined;
  const tls = authority?.issue([...new Set(["localhost", "127.0.0.1", shownHost])]);
  try {
    let listener: { port: number };
    if (options.network) {
      const api = open({ host: "127.0.0.1", port: 0, tls });
      const profile = mergeProfile(LOOPBACK, options.network);
      const target = { host: "127.0.0.1", port: api.port };
      listener = sandbox.network = await openNetwork(profile, { host: hostname, port }, target);
      releases.defer(() => sandbox.network?.stop());
    } else listener = open({ tls });
    const isPlain = !hasTls && !options.network;
    const controlPort = isPlain ? listener.port : open({ host: "127.0.0.1", port: 0 }).port;
    const url = `${hasTls ? "https" : "http"}://${shownHost}:${listener.port}`;
    sandbox.attachments.origin = url;
    releases.defer(() => sandbox.webhooks.clear());
    const stop = () => releases.disposeAsync();
    return {
      url,
      controlUrl: isPlain ? url : `http://127.0.0.1:${controlPort}`,
      authority: authority?.certificate ?? "",
      port: listener.port,
      key: DEFAULT_KEY,
      control,
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await releases.disposeAsync();
    throw error;
  }
}

async function openNetwork(...[profile, at, target]: Parameters<typeof Network.listen>): Promise<Network> {
  try {
    return await Network.listen(profile, at, target);
  } catch (error) {
    throw portError(error, at.port, PORT_VARIABLE);
  }
}

/** @param port of the connection's other end */
type Answer = (request: Request, port: number) => Response | Promise<Response>;

function serve(
  answer: Answer,
  at: { host: string; port: number; tls?: { certificate: string; key: string } | undefined },
): Listener {
  return listen(
    { fetch: (request, _server, peer) => answer(request, peer?.port ?? 0) },
    {
      ...at,
      portVariable: PORT_VARIABLE,
      // Slow answers are part of what is simulated.
      idleTimeout: 0,
      drainMs: 0,
      maxBodyBytes: MAX_BODY_BYTES,
      // Without headers of its own: the answers have those of the simulated service.
      ownHeaders: false,
      answerFault: (error) => {
        console.error("The sandbox failed at a request:", error);
        return Response.json({ error: { type: "SERVER_ERROR", message: String(error) } }, { status: 500 });
      },
    },
  );
}

function route(
  sandbox: Sandbox,
  control: Control,
  request: Request,
  clientPort: number,
): Response | Promise<Response> {
  const target = targetOf(request);
  switch (target.root) {
    case "v0":
      return handleApi(sandbox, request, target, clientPort);
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

/** `/v3/u/{token}/{attachment}/{name}`: the bytes of an attachment's URL. */
function attachmentBytes(sandbox: Sandbox, [, token = "", id = "", name = ""]: string[]): Response {
  const check = sandbox.attachments.check(token);
  if (check === "forged") return new Response("Forbidden\n", { status: 403 });
  if (check === "expired") return new Response("Gone\n", { status: 410 });
  return new Response(sandbox.attachments.bytes(id, name) as Uint8Array<ArrayBuffer>);
}
