/**
 * The files that pages load, made for an image: each in all encodings, with an index. The console of an image reads them
 * when they are asked for. Compressing them takes 8 MB of memory, which a process keeps for minutes, and bundling more.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { appPath } from "../../core/app-path";
import {
  ASSET_NAMES,
  type AssetName,
  BUNDLED_SCRIPTS,
  type BundledScript,
  type Encoding,
  encodeAsset,
  makeAsset,
  makeBundledScript,
} from "./make-assets";

/** In `apps/console`, with the name of each file that a browser asks for. */
const FOLDER = "apps/console/built-assets";
const INDEX = "index.json";

export interface BuiltAsset {
  path: string;
  type: string;
  isCompressible: boolean;
}

export type BuiltAssets = Record<AssetName | BundledScript, BuiltAsset>;

/** @returns undefined in a clone, where they are made from their sources */
export function builtAssets(): BuiltAssets | undefined {
  const index = appPath(FOLDER, INDEX);
  return existsSync(index) ? (JSON.parse(readFileSync(index, "utf8")) as BuiltAssets) : undefined;
}

/** Reads the content of a built asset. */
export async function readBuilt({ path }: BuiltAsset, encoding: Encoding): Promise<Uint8Array<ArrayBuffer>> {
  return await Bun.file(appPath(FOLDER, fileOf(path, encoding))).bytes();
}

/** Makes all assets, and writes them into the app in `root`. */
export async function buildAssets(root: string): Promise<void> {
  const folder = join(root, FOLDER);
  mkdirSync(join(folder, "assets"), { recursive: true });
  const index: Partial<BuiltAssets> = {};
  const names = [...ASSET_NAMES, ...BUNDLED_SCRIPTS];
  for (const name of names) {
    const asset = isBundled(name) ? await makeBundledScript(name) : makeAsset(name);
    const { path, type, isCompressible } = asset;
    for (const encoding of ["identity", ...(isCompressible ? (["br", "gzip"] as const) : [])] as const)
      writeFileSync(join(folder, fileOf(path, encoding)), await encodeAsset(asset.plain, encoding));
    index[name] = { path, type, isCompressible };
  }
  writeFileSync(join(folder, INDEX), `${JSON.stringify(index, null, 2)}\n`);
}

function isBundled(name: AssetName | BundledScript): name is BundledScript {
  return (BUNDLED_SCRIPTS as readonly string[]).includes(name);
}

function fileOf(path: string, encoding: Encoding): string {
  return encoding === "identity" ? path : `${path}.${encoding}`;
}
