/**
 * Software of others that the tests run: each test names it in its `meta`, with the version, and `bun run tools` prints a table of
 * all of it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Tool {
  name: string;
  version: string;
}

declare module "vitest" {
  interface TaskMeta {
    tools?: Tool[];
    /** What the tool does not do, as the docs say. */
    except?: string;
  }
}

/** For a test of tools. */
export const runs = (...tools: Tool[]) => ({ meta: { tools } });

/** A package that a `package.json` pins. */
export function pinned(folder: string, name: string, shown = name): Tool {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return { name: shown, version: dependencies?.[name] ?? devDependencies?.[name] };
}

/** A package of Debian; without a version if it is not installed. */
export function ofDebian(name: string, shown = name): Tool {
  if (!Bun.which("dpkg-query")) return { name: shown, version: "" };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a field of dpkg's
  const { stdout } = Bun.spawnSync(["dpkg-query", "-W", "-f=${Version}", name], { stderr: "ignore" });
  return {
    name: shown,
    version: stdout
      .toString()
      .replace(/^\d+:/, "")
      .replace(/[-+].*$/, ""),
  };
}

/** A program that prints its version, alone or after its name; without a version if it is not there. */
export function ofProgram(name: string, ...words: string[]): Tool {
  if (!Bun.which(words[0]!)) return { name, version: "" };
  const printed = Bun.spawnSync(words, { stderr: "ignore" }).stdout.toString();
  return { name, version: /\d+(\.\d+)+/.exec(printed)?.[0] ?? "" };
}

/** What the docs name and no test runs, and why. */
export const NOT_RUN: Record<string, string> = {
  "Airtable's clients for .NET, Go, PHP, R, Ruby and Elixir, LangChain, Supabase Wrappers":
    "no registry that the tests use has them",
  "DBeaver, Excel, Metabase, Power BI, Superset, Tableau":
    "programs with windows or servers: their drivers are run",
  "DuckDB's extension for Postgres": "it is downloaded from DuckDB's own server",
  "Hasura, PostgREST": "no registry that the tests use has them: what they read is checked",
  "n8n, Zapier, Make": "services or servers: their calls are sent",
  "pg_dump 16 and 17, pg_restore 16 to 18": "no registry that the tests use has them",
};
