/**
 * Makes the files that pages load: from the sources in a clone, and once for an image, where only their result is
 * (`deploy/image/bundle.ts`).
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { appPath } from "../../core/app-path";

const CSS = "text/css; charset=utf-8";
const JAVASCRIPT = "text/javascript; charset=utf-8";

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
/** Only for the public pages. */
const SITE_STYLES = ["site", "landing", "docs", "prose", "docs-lists", "api-reference"];

/** Likewise. */
const SCRIPTS = ["console", "connection", "palette", "shortcuts", "times", "chart-values"];

/** Of a browser's request, and of the file's name in an image. */
export type Encoding = "br" | "gzip" | "identity";

export interface MadeAsset {
  /** Its name has a hash of the content, so that browsers cache it forever and never show an old one. */
  path: string;
  type: string;
  /** The typeface is compressed by its format. */
  isCompressible: boolean;
  plain: Uint8Array<ArrayBuffer>;
}

/** The typeface of all pages: Latin letters, all weights. Its license is in its package. */
const FONT = "node_modules/@fontsource-variable/geist/files/geist-latin-wght-normal.woff2";

const makers = {
  font: () => made("geist.woff2", "font/woff2", [read(FONT)], false),
  style: () => made("style.css", CSS, [fontFace(), ...styles(STYLES)]),
  publicStyle: () =>
    made("public.css", CSS, [fontFace(), ...styles(STYLES.filter((name) => !CONSOLE_ONLY.includes(name)))]),
  siteStyle: () => made("site.css", CSS, styles(SITE_STYLES)),
  script: () => made("console.js", JAVASCRIPT, SCRIPTS.map(script)),
  htmx: () => made("htmx.min.js", JAVASCRIPT, [read("node_modules/htmx.org/dist/htmx.min.js")]),
  schema: () => made("schema.js", JAVASCRIPT, [script("schema")]),
  data: () => made("data.js", JAVASCRIPT, [script("data")]),
};

export type AssetName = keyof typeof makers;
export const ASSET_NAMES = Object.keys(makers) as AssetName[];

export function makeAsset(name: AssetName): MadeAsset {
  return makers[name]();
}

/** Scripts with libraries. */
export const BUNDLED_SCRIPTS = ["sql-editor", "sql-chart"] as const;
export type BundledScript = (typeof BUNDLED_SCRIPTS)[number];

/** Bundles a script with its libraries into one file, which takes half a second of processor time. */
export async function makeBundledScript(name: BundledScript): Promise<MadeAsset> {
  const { outputs } = await Bun.build({
    entrypoints: [appPath(`apps/console/assets/${name}.js`)],
    target: "browser",
    format: "esm",
    minify: true,
  });
  return made(`${name}.js`, JAVASCRIPT, [new Uint8Array(await outputs[0]!.arrayBuffer())]);
}

/** Compresses as far as the format can: the result is sent many times. */
export async function encodeAsset(plain: Uint8Array<ArrayBuffer>, encoding: Encoding) {
  if (encoding === "identity") return plain;
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  return new Uint8Array(
    encoding === "br"
      ? await promisify(brotliCompress)(plain, quality)
      : await promisify(gzip)(plain, { level: 9 }),
  );
}

function made(file: string, type: string, parts: Uint8Array[], isCompressible = true): MadeAsset {
  const plain = new Uint8Array(Buffer.concat(parts));
  const [, name, extension] = /(.+?)(\.\w+)$/.exec(file) ?? [];
  const hash = createHash("sha256").update(plain).digest("hex").slice(0, 12);
  return { path: `/assets/${name}.${hash}${extension}`, type, isCompressible, plain };
}

/** A page that has been drawn before the typeface has come keeps the system's: nothing moves. */
function fontFace(): Uint8Array {
  return Buffer.from(
    `@font-face { font-family: "Geist"; src: url("${makers.font().path}") format("woff2"); font-weight: 100 900; font-display: optional; }\n`,
  );
}

function styles(names: string[]): Uint8Array[] {
  return names.map((name) => read(`apps/console/assets/style/${name}.css`));
}

function script(name: string): Uint8Array {
  return read(`apps/console/assets/${name}.js`);
}

function read(path: string): Uint8Array {
  return readFileSync(appPath(path));
}
