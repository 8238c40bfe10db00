/** Rejects our own servers behind a pooler in transaction mode: session locks and settings do not last there. */
import { BasetideError } from "../errors";
import { ownServer } from "./client";
import { ipv6OnlyProblem } from "./ipv6-only";
import { findPooling } from "./pooling";
import { knownTransactionPooler, sessionRemedy } from "./session-urls";

/**
 * @param variable names the URL in the message
 * @throws BasetideError `config_invalid`, with the URL to use instead; `control_unavailable` if the server has only
 *   IPv6 and this machine has none; the connection's error
 */
export async function requireKeptSessions(url: string, variable: string): Promise<void> {
  const server = ownServer(url);
  const known = knownTransactionPooler(server);
  if (known === undefined && (await poolingOf(url, variable)) !== "transaction") return;
  throw new BasetideError(
    "config_invalid",
    `${variable}: ${known ?? "a pooler"} in transaction mode is in front of the server: it does not preserve session locks, settings and notifications. ${sessionRemedy(server)}.`,
  );
}

async function poolingOf(url: string, variable: string) {
  try {
    return await findPooling(url);
  } catch (cause) {
    const noRoute = await ipv6OnlyProblem(ownServer(url).host);
    if (noRoute === undefined) throw cause;
    throw new BasetideError("control_unavailable", `${variable}: ${noRoute}`, { cause });
  }
}
