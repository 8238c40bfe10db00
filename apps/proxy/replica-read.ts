/**
 * Answers reads from a replica: only if the client requests this by a header, or sends the own key of a base whose
 * settings allow it. The answer says whether the replica or the source gave it.
 *
 * P4. A replica answers only keys that the source itself has recently allowed to read this base. It never answers if
 *     its customer may change its rows, or its base does not sync; a replica of another account answers only requests
 *     with the header.
 */

import { type ConnectedBase, isKeyFresh } from "../../core/proxy";
import {
  isOurOffset,
  LOST_OFFSET,
  parseRead,
  type ReadAnswer,
  type ReadRequest,
} from "../../core/proxy/reads";
import type { Caller } from "./caller";
import type { ProxyContext } from "./context";
import { READ_HEADER, setExposed } from "./cors";
import type { ProxyTarget } from "./target";
import type { UpstreamRequest } from "./upstream";

const BY_HEADER = "x-basetide-answered-by";
/** The data is at least as recent as this. */
const AS_OF_HEADER = "x-basetide-as-of";

interface ReplicaRead {
  /** The replica's answer; absent if the source must be asked. */
  answer?: Response;
  /** A replica might have answered: the source's answer then says that it is the source's. */
  isCandidate: boolean;
}

export async function replicaRead(
  ctx: ProxyContext,
  request: UpstreamRequest,
  target: ProxyTarget,
  caller: Caller,
): Promise<ReplicaRead> {
  const header = request.headers.get(READ_HEADER) ?? null;
  request.headers.delete(READ_HEADER);
  const candidates = candidatesFor(caller, header);
  const isAsked = candidates.length > 0 || header === "replica";
  const readRequest =
    isAsked || (caller.isProven && namesOurOffset(request)) ? requestOf(target, request) : undefined;
  if (!readRequest) return { isCandidate: false };
  const mayRead = candidates.length > 0 && (await ctx.keys.mayRead(target.baseId!, caller.keyHash));
  const found = mayRead ? await firstAnswer(ctx, candidates, readRequest) : undefined;
  if (found) return { answer: toResponse(found), isCandidate: true };
  // The source does not know our offsets. An unproven key gets the source's own answer, as for any base.
  if (caller.isProven && readRequest.offset !== undefined && isOurOffset(readRequest.offset))
    return { answer: toResponse(LOST_OFFSET), isCandidate: true };
  return { isCandidate: true };
}

/** Marks the source's answer as the source's. */
export function sayFromSource(response: Response): void {
  setExposed(response.headers, BY_HEADER, "source");
}

/** The replicas that may answer: the key's own first, others' only if the client requests it. */
function candidatesFor(caller: Caller, header: string | null): ConnectedBase[] {
  if (header !== "replica" && header !== null) return [];
  const able = caller.found.bases.filter(
    (base) => base.isReadOnly && base.state === "active" && isKeyFresh(base),
  );
  const [own, others] = [able.filter(caller.isOwnKeyOf), able.filter((base) => !caller.isOwnKeyOf(base))];
  return header === "replica" ? [...own, ...others] : own.filter((base) => base.replicaReads);
}

function requestOf(target: ProxyTarget, { body }: UpstreamRequest): ReadRequest | undefined {
  const request = parseRead(target, body && new TextDecoder().decode(body));
  // Lists that the source began are continued by the source.
  if (request?.offset !== undefined && !isOurOffset(request.offset)) return undefined;
  return request;
}

/** Without parsing, because every read passes through here. */
function namesOurOffset({ path, body }: UpstreamRequest): boolean {
  return (
    path.includes("offset=basetide.") ||
    (body !== undefined && Buffer.from(body.buffer).includes("basetide."))
  );
}

async function firstAnswer(
  ctx: ProxyContext,
  bases: ConnectedBase[],
  request: ReadRequest,
): Promise<ReadAnswer | undefined> {
  for (const base of bases) {
    try {
      const answer = await ctx.writes.answer(base, request);
      if (answer) return answer;
    } catch (error) {
      ctx.log.debug({ baseId: base.id, error }, "read from the replica failed; forwarded to Airtable");
    }
  }
}

function toResponse({ status, body, asOf }: ReadAnswer): Response {
  const headers = new Headers({ "access-control-allow-origin": "*" });
  setExposed(headers, BY_HEADER, "replica");
  if (asOf) setExposed(headers, AS_OF_HEADER, asOf.toISOString());
  return Response.json(body, { status, headers });
}
