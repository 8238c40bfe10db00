/**
 * The files that pages load. They are read and compressed once at startup, and named by a hash of their content, so
 * that browsers cache them forever and never show an old one.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { Elysia } from "elysia";
import { securityHeaders } from "../../views/render";

const ROOT = new URL("../../", import.meta.url);

/** By subject, in the order in which later rules win. A browser gets them as one file. */
const STYLES = [
  "base",
  "frame",
  "toasts",
  "parts",
  "field-icons",
  "inputs",
  "settings",
  "tables",
  "onboarding",
  "connect",
  "figures",
  "freshness",
  "data",
  "grid",
  "cells",
  "record",
  "sql",
  "sql-side",
  "sql-results",
  "sql-plan",
  "sql-panes",
  "schema",
  "account",
  "palette",
  "panels",
  "helpers",
];

/** Likewise. */
const SCRIPTS = ["console", "connection", "palette", "shortcuts", "times", "chart-values"];

/** The typeface of all pages: Latin letters, all weights. Its license is in its package. */
const font = uncompressedAsset(
  "geist.woff2",
  "font/woff2",
  readFileSync(new URL("node_modules/@fontsource-variable/geist/files/geist-latin-wght-normal.woff2", ROOT)),
);

/** A page that has been drawn before the typeface has come keeps the system's: nothing moves. */
const FONT_FACE = `@font-face { font-family: "Geist"; src: url("${font.path}") format("woff2"); font-weight: 100 900; font-display: optional; }
`;

const style = makeAsset(
  "style.css",
  "text/css; charset=utf-8",
  STYLES.map((name) => `apps/console/assets/style/${name}.css`),
  FONT_FACE,
);
/** Parts of the console that the public pages do not have. */
const CONSOLE_ONLY = [
  "field-icons",
  "settings",
  "data",
  "grid",
  "sql",
  "sql-side",
  "sql-results",
  "sql-plan",
  "sql-panes",
  "schema",
];
const publicStyle = makeAsset(
  "public.css",
  "text/css; charset=utf-8",
  STYLES.filter((name) => !CONSOLE_ONLY.includes(name)).map(
    (name) => `apps/console/assets/style/${name}.css`,
  ),
  FONT_FACE,
);
/** Only for the public pages. */
const SITE_STYLES = ["site", "landing", "docs", "prose", "docs-lists", "api-reference"];
const siteStyle = makeAsset(
  "site.css",
  "text/css; charset=utf-8",
  SITE_STYLES.map((name) => `apps/console/assets/style/${name}.css`),
);
const script = makeAsset(
  "console.js",
  "text/javascript; charset=utf-8",
  SCRIPTS.map((name) => `apps/console/assets/${name}.js`),
);
const htmx = makeAsset("htmx.min.js", "text/javascript; charset=utf-8", [
  "node_modules/htmx.org/dist/htmx.min.js",
]);

const schema = makeAsset("schema.js", "text/javascript; charset=utf-8", ["apps/console/assets/schema.js"]);
const data = makeAsset("data.js", "text/javascript; charset=utf-8", ["apps/console/assets/data.js"]);

/** The URLs that pages use. */
export const assetUrls = { font: font.path, style: style.path, script: script.path, htmx: htmx.path };

/** For the public pages, which have no parts that refresh themselves. */
export const siteAssetUrls = {
  font: font.path,
  style: publicStyle.path,
  siteStyle: siteStyle.path,
  script: script.path,
};

/** The script of the data browser's pages alone. */
export const dataScript = data.path;

/** The script of the schema page alone. */
export const schemaScript = schema.path;

/** Scripts with libraries. They take half a second of processor time, so each is made when it is first needed. */
const bundles = new Map<string, Promise<Asset>>();
const BUNDLE_PATH = /^\/assets\/(sql-editor|sql-chart)\./;

function bundledAsset(name: string): Promise<Asset> {
  const known = bundles.get(name);
  if (known) return known;
  const made = bundle(`assets/${name}.js`).then((text) =>
    compressedAsset(`${name}.js`, "text/javascript; charset=utf-8", text),
  );
  bundles.set(name, made);
  return made;
}

/** The URLs of the SQL editor's script, and of the one that it loads to draw charts. */
export async function editorScripts(): Promise<{ script: string; chartScript: string }> {
  const [editor, chart] = await Promise.all([bundledAsset("sql-editor"), bundledAsset("sql-chart")]);
  return { script: editor.path, chartScript: chart.path };
}

const byPath = new Map(
  [font, style, publicStyle, siteStyle, script, htmx, schema, data].map((asset) => [asset.path, asset]),
);

export function assetRoutes() {
  return new Elysia({ name: "assets" }).get("/assets/:file", ({ request }) => answerAsset(request), {
    detail: { hide: true },
  });
}

type Encoding = "br" | "gzip" | "identity";

interface Asset {
  path: string;
  type: string;
  /** Null: it is only sent as it is. */
  bodies: Record<Exclude<Encoding, "identity">, Uint8Array<ArrayBuffer> | null> & {
    identity: Uint8Array<ArrayBuffer>;
  };
}

/** @param head comes before the parts */
function makeAsset(file: string, type: string, parts: string[], head = ""): Asset {
  const texts = parts.map((part) => readFileSync(new URL(part, ROOT)));
  return compressedAsset(file, type, new Uint8Array(Buffer.concat([Buffer.from(head), ...texts])));
}

/** Of a file that is compressed by its format. */
function uncompressedAsset(file: string, type: string, content: Uint8Array): Asset {
  const plain = new Uint8Array(content);
  return { path: assetPath(file, plain), type, bodies: { br: null, gzip: null, identity: plain } };
}

/** Its name has a hash of the content. */
function assetPath(file: string, plain: Uint8Array): string {
  const [, name, extension] = /(.+?)(\.\w+)$/.exec(file) ?? [];
  const hash = createHash("sha256").update(plain).digest("hex").slice(0, 12);
  return `/assets/${name}.${hash}${extension}`;
}

function compressedAsset(file: string, type: string, plain: Uint8Array<ArrayBuffer>): Asset {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  return {
    path: assetPath(file, plain),
    type,
    bodies: {
      br: new Uint8Array(brotliCompressSync(plain, quality)),
      gzip: new Uint8Array(gzipSync(plain, { level: 9 })),
      identity: plain,
    },
  };
}

async function answerAsset(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const [, bundled] = BUNDLE_PATH.exec(pathname) ?? [];
  const known = byPath.get(pathname) ?? (bundled ? await bundledAsset(bundled) : undefined);
  const asset = known?.path === pathname ? known : undefined;
  if (!asset) return new Response("Not found", { status: 404, headers: securityHeaders });
  const chosen = chooseEncoding(request.headers.get("accept-encoding") ?? "");
  const encoding = asset.bodies[chosen] ? chosen : "identity";
  return new Response(asset.bodies[encoding], {
    headers: {
      ...securityHeaders,
      "content-type": asset.type,
      "cache-control": "public, max-age=31536000, immutable",
      vary: "Accept-Encoding",
      ...(encoding === "identity" ? {} : { "content-encoding": encoding }),
    },
  });
}

/** Chooses an encoding that the client accepts and does not refuse with `q=0`; Brotli first. */
function chooseEncoding(accepted: string): Encoding {
  const offered = accepted.split(",").map((part) => part.trim().toLowerCase());
  const takes = (name: string) =>
    offered.some((part) => part.split(";")[0]?.trim() === name && !/;\s*q=0(\.0+)?$/.test(part));
  return takes("br") ? "br" : takes("gzip") ? "gzip" : "identity";
}

/** Bundles a script with its libraries into one file, for the browser. @param entry relative to this file */
async function bundle(entry: string): Promise<Uint8Array<ArrayBuffer>> {
  const { outputs } = await Bun.build({
    entrypoints: [fileURLToPath(new URL(entry, import.meta.url))],
    target: "browser",
    format: "esm",
    minify: true,
  });
  return new Uint8Array(await outputs[0]!.arrayBuffer());
}
