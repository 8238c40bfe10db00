/**
 * Reads that a replica answers: where the client asks for it by a header, or the base's setting says so, and never
 * otherwise. The answer says who gave it.
 *
 * P4. A replica answers only keys that the source itself has lately let read this base.
 */
import { isOurOffset, parseRead, type ReadAnswer, type ReadRequest } from "../../core/reads";
import type { ConnectedBase } from "../../core/writes";
import type { ProxyContext } from "./context";
import type { UpstreamRequest } from "./upstream";

/** `x-basetide-read: replica` */
const ASK_HEADER = "x-basetide-read";
const BY_HEADER = "x-basetide-answered-by";
/** The data is at least as new as this. */
const AS_OF_HEADER = "x-basetide-as-of";
/** A key that the source has let in is believed for so long. */
const PROVEN_MS = 10 * 60_000;
const MAX_PROVEN = 10_000;

/** Keys that the source has lately let read a base; hashes only. */
export class ProvenKeys {
  readonly #until = new Map<string, number>();

  note(baseId: string, authorization: string | null): void {
    if (authorization === null) return;
    if (this.#until.size >= MAX_PROVEN) this.#until.clear();
    this.#until.set(hash(baseId, authorization), performance.now() + PROVEN_MS);
  }

  isProven(baseId: string, authorization: string | null): boolean {
    if (authorization === null) return false;
    return (this.#until.get(hash(baseId, authorization)) ?? 0) > performance.now();
  }
}

function hash(baseId: string, authorization: string): string {
  return new Bun.CryptoHasher("sha256").update(`${baseId}\n${authorization}`).digest("base64");
}

export interface ReplicaRead {
  /** The replica's; absent where the source is to be asked. */
  answer?: Response;
  /** To be called with the source's answer. */
  noteSource(response: Response): void;
}

/** @param bases who has connected the base */
export async function replicaRead(
  ctx: ProxyContext,
  asked: UpstreamRequest,
  baseId: string,
  bases: ConnectedBase[],
): Promise<ReplicaRead> {
  const authorization = asked.headers.get("authorization");
  const header = asked.headers.get(ASK_HEADER);
  asked.headers.delete(ASK_HEADER);
  const candidates =
    header === "replica" ? bases : header === null ? bases.filter((base) => base.replicaReads) : [];
  const request = candidates.length > 0 || namesOurOffset(asked) ? requestOf(asked) : undefined;
  const noteSource = (response: Response) => {
    if (!request) return;
    if (response.ok) ctx.provenKeys.note(baseId, authorization);
    response.headers.set(BY_HEADER, "source");
  };
  if (!request) return { noteSource };
  const isProven = ctx.provenKeys.isProven(baseId, authorization);
  const found = isProven ? await firstAnswer(ctx, candidates, request) : undefined;
  if (found) return { answer: toResponse(found), noteSource };
  // The source would not know what to do with a place of ours.
  if (request.offset !== undefined && isOurOffset(request.offset))
    return { answer: toResponse(LOST), noteSource };
  return { noteSource };
}

const LOST: ReadAnswer = {
  status: 422,
  body: { error: { type: "LIST_RECORDS_ITERATOR_NOT_AVAILABLE" } },
  asOf: null,
};

function requestOf({ method, url, body }: UpstreamRequest): ReadRequest | undefined {
  const request = parseRead(method, url, body && new TextDecoder().decode(body));
  // The source's own lists are the source's to go on with.
  if (request?.offset !== undefined && !isOurOffset(request.offset)) return undefined;
  return request;
}

/** Without parsing, as every read comes by here. */
function namesOurOffset({ url, body }: UpstreamRequest): boolean {
  return (
    url.includes("offset=basetide.") || (body !== undefined && Buffer.from(body.buffer).includes("basetide."))
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
      ctx.log.debug({ baseId: base.id, error }, "read not answered from the replica");
    }
  }
}

function toResponse({ status, body, asOf }: ReadAnswer): Response {
  const headers = new Headers({ [BY_HEADER]: "replica", "access-control-allow-origin": "*" });
  if (asOf) headers.set(AS_OF_HEADER, asOf.toISOString());
  return Response.json(body, { status, headers });
}
