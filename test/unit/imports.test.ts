/**
 * The directions of imports: `core` is below, `views` above it, `apps` on top and apart from each other; only
 * `core/replica` touches the SQL of a replica.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { repoFiles, repoRoot } from "../support/source-files";

/** From whose code, to whose. */
interface Rule {
  /** Beginning of the importing file's path. */
  from: string;
  /** Beginnings of the paths that it may import. */
  may: string[];
  why: string;
}

const RULES: Rule[] = [
  { from: "core/", may: ["core/"], why: "core imports nothing from above" },
  { from: "views/", may: ["views/", "core/"], why: "views import core at most" },
  { from: "apps/up/", may: ["apps/", "core/"], why: "apps/up starts the apps, which carry their own views" },
  {
    from: "apps/sandbox/",
    may: ["apps/sandbox/", "core/http/"],
    why: "the sandbox stands in for somebody else's service",
  },
  { from: "apps/console/", may: ["apps/console/", "core/", "views/"], why: "apps are apart from each other" },
  { from: "apps/proxy/", may: ["apps/proxy/", "core/"], why: "apps are apart from each other" },
  { from: "apps/worker/", may: ["apps/worker/", "core/"], why: "apps are apart from each other" },
  { from: "apps/operator/", may: ["apps/operator/", "core/"], why: "apps are apart from each other" },
];

/** The code that the rules are about; `package.json` and files of `sql` are data. */
const LAYERS = /^(apps|core|views|test)\//;

/** Where the SQL of replicas lies, and who may speak of it. */
const REPLICA_SQL = "sql/replica";
const REPLICA_OWNER = "core/replica/";

const typescript = new Bun.Transpiler({ loader: "ts" });
const tsx = new Bun.Transpiler({ loader: "tsx" });

/** What breaks the rules in one file; `import type` does not count, it is gone when the code runs. */
function violations(path: string, source: string): string[] {
  const found: string[] = [];
  const rule = RULES.find(({ from }) => path.startsWith(from));
  const transpiler = path.endsWith("x") ? tsx : typescript;
  for (const { path: imported } of rule ? transpiler.scanImports(source) : []) {
    const target = imported.startsWith(".") ? join(dirname(path), imported) : undefined;
    if (target && LAYERS.test(target) && !rule!.may.some((allowed) => `${target}/`.startsWith(allowed))) {
      found.push(`${path} imports ${target}: ${rule!.why}`);
    }
  }
  if (rule && !path.startsWith(REPLICA_OWNER) && source.includes(REPLICA_SQL)) {
    found.push(`${path} names ${REPLICA_SQL}: only core/replica writes to a replica`);
  }
  return found;
}

test("every import goes down, and only core/replica touches the SQL of replicas", () => {
  const files = ["apps", "core", "views"].flatMap((folder) => repoFiles(folder)).filter(isCode);
  expect(files.length).toBeGreaterThan(10);
  const found = files.flatMap((path) => violations(path, readFileSync(join(repoRoot, path), "utf8")));
  expect(found).toEqual([]);
});

test.for([
  ["core/sync/a.ts", 'import { page } from "../../views/page";'],
  ["core/sync/a.ts", 'export * from "../../apps/worker/sync-job";'],
  ["core/sync/a.ts", 'const late = await import("../../apps/worker/sync-job");'],
  ["views/pages/a.tsx", 'import { app } from "../../apps/console/app"; export const page = <p>{app}</p>;'],
  ["apps/proxy/a.ts", 'import { app } from "../console/app";'],
  ["apps/proxy/a.ts", 'import { page } from "../../views/page";'],
  ["apps/sandbox/a.ts", 'import { BasetideError } from "../../core/errors"; throw new BasetideError("x");'],
  ["apps/worker/a.ts", 'const file = "../../sql/replica/journal.sql";'],
])("a planted violation is found: %s: %s", ([path, source]) => {
  expect(violations(path!, `${source}\nconsole.log(app, page, late);`)).toHaveLength(1);
});

test.for([
  ["core/sync/a.ts", 'import { x } from "../replica"; import postgres from "postgres";'],
  ["apps/sandbox/a.ts", 'import type { FieldType } from "../../core/source";'],
  ["apps/up/a.ts", 'import { startConsole } from "../console/start";'],
  ["core/replica/a.ts", 'const file = "../../sql/replica/journal.sql";'],
])("what is allowed is let through: %s: %s", ([path, source]) => {
  expect(violations(path!, source!)).toEqual([]);
});

function isCode(path: string): boolean {
  return /\.tsx?$/.test(path);
}
