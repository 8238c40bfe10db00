/**
 * A source whose answers are damaged in one part: a server in front of a sandbox that changes the answers for a base as
 * its damage says, and passes all others on as they are.
 */

export type AnswerKind = "schema" | "records" | "payloads" | "webhooks";

/** Changes one part of an answer of one kind. */
export interface Damage {
  kind: AnswerKind;
  /** Names the part and what becomes of it. */
  what: string;
  /** Changes the answer in place; returns false if it does not have the part. */
  apply(answer: Json): boolean;
  /** Ids of records whose rows may differ while it lasts. */
  records: ReadonlySet<string>;
  /** It must be named in `_sync_issues` while it lasts. */
  isNamed: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are damaged in any way.
export type Json = any;

export interface DamagedSource extends AsyncDisposable {
  url: string;
  /** Damages the answers for a base from now on. */
  begin(baseId: string, damages: Damage[]): { played(): number };
  end(baseId: string): void;
}

/** Starts a server in front of `url`. */
export async function startDamagedSource(url: string): Promise<DamagedSource> {
  const active = new Map<string, { damages: Damage[]; played: number }>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 120,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const path = request.url.slice(request.url.indexOf("/", 8));
      const headers = new Headers(request.headers);
      headers.delete("host");
      headers.delete("accept-encoding");
      const body = request.method === "GET" ? undefined : await request.arrayBuffer();
      const answer = await fetch(url + (path || pathname + search), {
        method: request.method,
        headers,
        ...(body && { body }),
      });
      const passed = { status: answer.status, headers: { "content-type": "application/json" } };
      const [baseId, kind] = kindOf(request.method, pathname);
      const damaged = active.get(baseId);
      const text = await answer.text();
      if (!damaged || !kind || answer.status !== 200) return new Response(text, passed);
      const value = JSON.parse(text);
      let isPlayed = false;
      for (const damage of damaged.damages) {
        if (damage.kind === kind && damage.apply(value)) isPlayed = true;
      }
      if (isPlayed) damaged.played++;
      return new Response(isPlayed ? JSON.stringify(value) : text, passed);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    begin(baseId, damages) {
      const one = { damages, played: 0 };
      active.set(baseId, one);
      return { played: () => one.played };
    },
    end: (baseId) => void active.delete(baseId),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

/** Returns the base of a request, and the kind of its answer. */
function kindOf(method: string, path: string): [baseId: string, kind: AnswerKind | undefined] {
  const [, , first = "", second = "", third = "", fourth = "", fifth = ""] = path.split("/");
  if (first === "meta") return [third, fourth === "tables" ? "schema" : undefined];
  if (first === "bases") {
    const kind = fifth === "payloads" || path.endsWith("/payloads") ? "payloads" : "webhooks";
    return [second, method === "GET" ? kind : undefined];
  }
  const isRead = method === "GET" || third === "listRecords";
  return [first, isRead ? "records" : undefined];
}
