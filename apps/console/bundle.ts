/** Bundles a page's script with its libraries into one file, for the browser. */
import { fileURLToPath } from "node:url";

/** @param entry relative to this file */
export async function bundle(entry: string): Promise<Uint8Array<ArrayBuffer>> {
  const { outputs } = await Bun.build({
    entrypoints: [fileURLToPath(new URL(entry, import.meta.url))],
    target: "browser",
    format: "esm",
    minify: true,
  });
  return new Uint8Array(await outputs[0]!.arrayBuffer());
}
