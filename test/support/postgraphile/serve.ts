/** PostGraphile with the documented configuration and the generated tags: builds the schema of a base, and queries all of it. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installPinned, missingPackages } from "../install-pinned";

/** The folder that pins the packages. */
export const POSTGRAPHILE_FOLDER = import.meta.dirname;
const PACKAGES = [POSTGRAPHILE_FOLDER, "basetide-postgraphile", "PostGraphile"] as const;

/** Why it cannot be run here. */
export const withoutPostgraphile = () => missingPackages(...PACKAGES);

export interface Served {
  /** What PostGraphile logged while it built the schema. */
  log: string;
  /** By the description of the type, which begins with the name of the table or view: rows, and names of the fields. */
  types: { type: string; description: string; rows: number; fields: string[] }[];
  /** The answer to `query`. */
  answer: unknown;
}

/**
 * Reads up to `rows` rows of every table and view, with all columns and every relation of each row.
 *
 * @param config text of `graphile.config.mjs`
 * @throws if PostGraphile cannot be installed, or answers with an error
 */
export async function serveWithPostgraphile(input: {
  url: string;
  config: string;
  tags: string;
  query?: string | undefined;
  /** Bun unless given. */
  runtime?: string | undefined;
}): Promise<Served> {
  const installed = installPinned(...PACKAGES);
  // In the folder of the packages, where the configuration finds them.
  const folder = join(installed, `base-${crypto.randomUUID().slice(0, 8)}`);
  mkdirSync(folder);
  try {
    writeFileSync(join(folder, "graphile.config.mjs"), input.config);
    writeFileSync(join(folder, "postgraphile.tags.json5"), input.tags);
    cpSync(join(import.meta.dirname, "program.mjs"), join(folder, "program.mjs"));
    const child = Bun.spawn([input.runtime ?? process.execPath, "program.mjs", input.query ?? ""], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: input.url, GRAPHILE_ENV: "development" },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, log, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`PostGraphile: ${out}${log}`);
    return { log, ...JSON.parse(out) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
