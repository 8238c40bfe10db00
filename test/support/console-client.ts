/**
 * A browser without a screen: stores cookies, sends forms with a browser's headers, and returns redirects without
 * following them.
 */
import type { Elysia } from "elysia";

export interface Answer {
  status: number;
  headers: Headers;
  /** Path and query of a redirect. */
  location: string | null;
  text: string;
}

export interface ConsoleClient {
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** Sends a form from a page of ours; `headers` may claim another origin. */
  post(path: string, form: Record<string, string>, headers?: Record<string, string>): Promise<Answer>;
  cookies: Map<string, string>;
}

const ORIGIN = "http://console";

/** @param address of the client, for a console whose CLIENT_IP_HEADER is `x-client` */
export function consoleClient(app: Pick<Elysia, "handle">, address: string = randomAddress()): ConsoleClient {
  const cookies = new Map<string, string>();
  const send = async (method: string, path: string, body: string | null, given: Record<string, string>) => {
    const headers = new Headers({ accept: "text/html", "x-client": address, ...given });
    if (cookies.size > 0)
      headers.set("cookie", [...cookies].map(([name, value]) => `${name}=${value}`).join("; "));
    const response = await app.handle(new Request(`${ORIGIN}${path}`, { method, headers, body }));
    for (const cookie of response.headers.getSetCookie()) keep(cookies, cookie);
    return {
      status: response.status,
      headers: response.headers,
      location: response.headers.get("location"),
      text: await response.text(),
    };
  };
  return {
    cookies,
    get: (path, headers = {}) => send("GET", path, null, headers),
    post: (path, form, headers = { origin: ORIGIN, "sec-fetch-site": "same-origin" }) =>
      send("POST", path, new URLSearchParams(form).toString(), {
        "content-type": "application/x-www-form-urlencoded",
        ...headers,
      }),
  };
}

function keep(cookies: Map<string, string>, cookie: string): void {
  const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
  if (/max-age=0(;|$)/i.test(cookie)) cookies.delete(name);
  else cookies.set(name, value);
}

function randomAddress(): string {
  return `198.18.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`;
}
