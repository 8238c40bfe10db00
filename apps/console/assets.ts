/**
 * The files that pages load. They are named by a hash of their content, so that browsers cache them forever and never
 * show an old one. An image has them ready; in a clone, each is compressed, or bundled, when it is first asked for.
 */
import { Elysia } from "elysia";
import { securityHeaders } from "../../views/render";
import { type BuiltAsset, builtAssets, readBuilt } from "./built-assets";
import {
  ASSET_NAMES,
  type AssetName,
  BUNDLED_SCRIPTS,
  type BundledScript,
  type Encoding,
  encodeAsset,
  type MadeAsset,
  makeAsset,
  makeBundledScript,
} from "./make-assets";

type Asset = BuiltAsset | MadeAsset;

const built = builtAssets();
const assets = Object.fromEntries(
  ASSET_NAMES.map((name) => [name, built?.[name] ?? makeAsset(name)]),
) as Record<AssetName, Asset>;
const byPath = new Map(Object.values(assets).map((asset) => [asset.path, asset]));

/** The URLs that pages use. */
export const assetUrls = {
  font: assets.font.path,
  style: assets.style.path,
  script: assets.script.path,
  htmx: assets.htmx.path,
};

/** For the public pages, which have no parts that refresh themselves. */
export const siteAssetUrls = {
  font: assets.font.path,
  style: assets.publicStyle.path,
  siteStyle: assets.siteStyle.path,
  script: assets.script.path,
};

/** The script of the data browser's pages alone. */
export const dataScript = assets.data.path;

/** The script of the schema page alone. */
export const schemaScript = assets.schema.path;

const bundles = new Map<BundledScript, Promise<Asset>>();

function bundledAsset(name: BundledScript): Promise<Asset> {
  const known = bundles.get(name);
  if (known) return known;
  const asset = built ? Promise.resolve(built[name]) : makeBundledScript(name);
  bundles.set(name, asset);
  return asset;
}

/** The URLs of the SQL editor's script, and of the one that it loads to draw charts. */
export async function editorScripts(): Promise<{ script: string; chartScript: string }> {
  const [editor, chart] = await Promise.all([bundledAsset("sql-editor"), bundledAsset("sql-chart")]);
  return { script: editor.path, chartScript: chart.path };
}

export function assetRoutes() {
  return new Elysia({ name: "assets" }).get("/assets/:file", ({ request }) => answerAsset(request), {
    detail: { hide: true },
  });
}

async function answerAsset(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const bundled = BUNDLED_SCRIPTS.find((name) => pathname.startsWith(`/assets/${name}.`));
  const known = byPath.get(pathname) ?? (bundled ? await bundledAsset(bundled) : undefined);
  const asset = known?.path === pathname ? known : undefined;
  if (!asset) return new Response("Not found", { status: 404, headers: securityHeaders });
  const encoding = asset.isCompressible
    ? chooseEncoding(request.headers.get("accept-encoding") ?? "")
    : "identity";
  return new Response(await contentOf(asset, encoding), {
    headers: {
      ...securityHeaders,
      "content-type": asset.type,
      "cache-control": "public, max-age=31536000, immutable",
      vary: "Accept-Encoding",
      ...(encoding === "identity" ? {} : { "content-encoding": encoding }),
    },
  });
}

const encoded = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

/** Of a clone's assets, each encoding is kept: compressing takes 0.2 s. */
function contentOf(asset: Asset, encoding: Encoding): Promise<Uint8Array<ArrayBuffer>> {
  if (!("plain" in asset)) return readBuilt(asset, encoding);
  const key = `${asset.path} ${encoding}`;
  const known = encoded.get(key) ?? encodeAsset(asset.plain, encoding);
  encoded.set(key, known);
  return known;
}

/** Chooses an encoding that the client accepts and does not refuse with `q=0`; Brotli first. */
function chooseEncoding(accepted: string): Encoding {
  const offered = accepted.split(",").map((part) => part.trim().toLowerCase());
  const takes = (name: string) =>
    offered.some((part) => part.split(";")[0]?.trim() === name && !/;\s*q=0(\.0+)?$/.test(part));
  return takes("br") ? "br" : takes("gzip") ? "gzip" : "identity";
}
