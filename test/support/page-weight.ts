/** What a browser loads for a page that it sees for the first time, as it is sent: the page, its styles and scripts. */

/** Of any page but the SQL editor, bytes. */
export const PAGE_WEIGHT = 60_000;
/** Of the SQL editor's own script, bytes. */
export const EDITOR_WEIGHT = 145_000;
/** Of the typeface, which all pages share and browsers keep, bytes. */
export const FONT_WEIGHT = 40_000;
/** @param path of an asset */
export const isFont = (path: string) => path.endsWith(".woff2");
/** Loaded by the SQL editor alone. */
const EDITOR_SCRIPT = /^\/assets\/sql-editor\./;

export interface PageWeight {
  status: number;
  text: string;
  /** Without the SQL editor's script and the typeface. */
  bytes: number;
  fontBytes: number;
  editorBytes: number;
}

/** Remembers the sizes of assets, which are named by their content. */
export function pageScales(origin: string, encoding = "gzip") {
  const assets = new Map<string, number>();

  async function sizeOf(path: string): Promise<number> {
    const known = assets.get(path);
    if (known !== undefined) return known;
    const answer = await fetch(`${origin}${path}`, ask({}));
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
    const size = (await answer.arrayBuffer()).byteLength;
    assets.set(path, size);
    return size;
  }

  function ask(headers: Record<string, string>) {
    // Bun gives the bytes as they were sent.
    return {
      headers: { ...headers, "accept-encoding": encoding },
      decompress: false,
      redirect: "manual",
    } as const;
  }

  return async (path: string, headers: Record<string, string>): Promise<PageWeight> => {
    const answer = await fetch(`${origin}${path}`, ask({ accept: "text/html", ...headers }));
    const body = new Uint8Array(await answer.arrayBuffer());
    const text = new TextDecoder().decode(
      answer.headers.get("content-encoding") === "gzip" ? Bun.gunzipSync(body) : body,
    );
    let bytes = body.length;
    let editorBytes = 0;
    let fontBytes = 0;
    const names = [...text.matchAll(/<(?:link|script|img)\b[^>]*?\b(?:href|src)="(\/[^"]+)"/g)];
    for (const asset of new Set(names.map(([, name]) => name!))) {
      const size = await sizeOf(asset);
      if (EDITOR_SCRIPT.test(asset)) editorBytes += size;
      else if (isFont(asset)) fontBytes += size;
      else bytes += size;
    }
    return { status: answer.status, text, bytes, editorBytes, fontBytes };
  };
}
