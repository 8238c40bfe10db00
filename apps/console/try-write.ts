/** Writes a record through the proxy, as a customer's program would. Only in a sandbox, whose data is for trying. */
import type { Config } from "../../core/config";
import type { Context } from "../../core/context";
import { type Base, openApiKey } from "../../core/control/bases";
import { cutText } from "../../core/cut-text";
import { BasetideError } from "../../core/errors";
import type { WriteExample } from "../../views/base/write-snippets";

const TIMEOUT_MS = 10_000;
const PROBE_TIMEOUT_MS = 500;
/** A part of the sandbox that Airtable does not have. */
const SANDBOX_PATH = "/_sandbox/settings";

const known = new Map<string, boolean>();

/** Is the source a sandbox? Asked once per address. */
export async function isSandbox({ upstreams }: Pick<Config, "upstreams">): Promise<boolean> {
  for (const [host, address] of Object.entries(upstreams)) {
    if (new URL(address).hostname === host) return false;
    if (!known.has(address)) {
      const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
      const answer = await fetch(address + SANDBOX_PATH, { signal, redirect: "manual" }).catch(() => null);
      if (answer === null) return false;
      known.set(address, answer.status === 200);
    }
    if (!known.get(address)) return false;
  }
  return true;
}

/**
 * Creates a record and updates it.
 *
 * @returns its id
 * @throws BasetideError `conflict` if the source is not a sandbox, `source_rejected` with the answer of the proxy
 */
export async function tryWrite(
  ctx: Pick<Context, "config" | "db" | "secrets">,
  base: Base,
  example: WriteExample,
): Promise<string> {
  if (!(await isSandbox(ctx.config)))
    throw new BasetideError("conflict", "Only bases of a sandbox can be written to from here");
  const { endpoint, baseId, table, field, created, updated } = example;
  const records = `${endpoint}/v0/${baseId}/${encodeURIComponent(table)}`;
  const authorization = `Bearer ${await openApiKey(ctx, base)}`;
  const send = async (method: string, url: string, value: string) => {
    const answer = await fetch(url, {
      method,
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ fields: { [field]: value } }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw new BasetideError("source_rejected", `The proxy at ${ctx.config.proxyUrl} does not answer`, {
        cause: error,
      });
    });
    const text = await answer.text();
    if (!answer.ok)
      throw new BasetideError(
        "source_rejected",
        `The proxy answered ${answer.status}: ${cutText(text, 300)}`,
      );
    return JSON.parse(text) as { id: string };
  };
  const { id } = await send("POST", records, created);
  await send("PATCH", `${records}/${id}`, updated);
  return id;
}
