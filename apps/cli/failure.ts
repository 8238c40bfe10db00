/** Errors of the command line itself, and how all of them are printed. */

import { printable } from "../../core/terminal";
import { ApiFailure } from "./client";

/** The exit codes of `diff` and `check`; every other command uses the first two. */
export const EXIT = { same: 0, error: 1, different: 2 } as const;

/** An error of usage or of the machine; the message names the thing and the remedy. */
export class CliError extends Error {
  override readonly name = "CliError";

  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** `{"error":{"code","message"}}` with `--json`, else `error (code): message`. */
export function failureText(error: unknown, isJson: boolean): string {
  const { code, message, requestId } = described(error);
  const request = requestId ? { request_id: requestId } : {};
  if (isJson) return printable(JSON.stringify({ error: { code, message, ...request } }));
  return printable(`error (${code}): ${message}${requestId ? `\nRequest id: ${requestId}` : ""}`);
}

function described(error: unknown): { code: string; message: string; requestId?: string | undefined } {
  if (error instanceof ApiFailure) {
    const hint = error.status === 401 ? " Run `basetide login`." : "";
    return { code: error.code, message: `${error.message}${hint}`, requestId: error.requestId };
  }
  if (error instanceof CliError) return { code: error.code, message: error.message };
  if (isUnreachable(error)) {
    const message =
      "The console cannot be reached. Check the address (`basetide login --url`) and your network.";
    return { code: "unreachable", message };
  }
  return { code: "internal", message: error instanceof Error ? error.message : String(error) };
}

/** Node and Bun report a failed connection in different ways. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code ?? (error.cause as { code?: unknown } | undefined)?.code;
  return (
    error.message === "fetch failed" || /^(ConnectionRefused|FailedToOpenSocket|E[A-Z]+)$/.test(String(code))
  );
}
