/**
 * The directions of imports: `core` is below, `views` above it, `apps` on top and apart from each other. Core is layers:
 * an import points down, and enters a folder only by its `index.ts`. Only `core/replica` touches the SQL of a replica, and
 * every connection to a server of replicas counts in a budget.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { repoFiles, repoRoot } from "../support/source-files";

/** From which code, to which. */
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
  {
    from: "apps/all/",
    may: ["apps/", "core/"],
    why: "apps/all starts the apps, which carry their own views",
  },
  { from: "apps/up/", may: ["apps/", "core/"], why: "apps/up starts the apps, which carry their own views" },
  {
    from: "apps/sandbox/",
    may: ["apps/sandbox/", "core/http/index/", "core/formula/index/"],
    why: "the sandbox simulates another company's service",
  },
  { from: "apps/console/", may: ["apps/console/", "core/", "views/"], why: "apps are apart from each other" },
  { from: "apps/proxy/", may: ["apps/proxy/", "core/"], why: "apps are apart from each other" },
  { from: "apps/worker/", may: ["apps/worker/", "core/"], why: "apps are apart from each other" },
  { from: "apps/cli/client/", may: ["apps/cli/client/"], why: "the client can be published on its own" },
  {
    from: "apps/cli/",
    may: ["apps/cli/", "core/terminal/"],
    why: "customers run it, with Node, against the API only",
  },
  { from: "apps/operator/", may: ["apps/operator/", "core/"], why: "apps are apart from each other" },
];

/** The folders of core, from top to bottom: each may import those below it. Files at core's root are at the bottom. */
const LAYERS = [
  "sql-editor",
  "data-browser",
  "exports",
  "alerts",
  "attachments",
  "proxy",
  "proxy/reads",
  "queue",
  "keys",
  "control/sync-host",
  "control/base-move",
  "control/account-move",
  "control/setup",
  "control/onboarding",
  "control/members",
  "control/fleet",
  "control/history",
  "control/agents",
  "control/change-sets",
  "control/status",
  "control/bases",
  "control/accounts",
  "control/placement",
  "control/jobs",
  "control/feeds",
  "control/budgets",
  "control/audit",
  "control/retention",
  "sync/lease",
  "sync/modes/live",
  "sync/modes/rapid",
  "sync/modes/shared",
  "sync/engine",
  "sync/state",
  "sync/pacing",
  "sync/host",
  "replica",
  "limiter",
  "source",
  "process.ts",
  "formula",
  "http/service",
  "http/connections",
  "http",
  "postgres",
  "external",
  "net",
  "async",
].map((layer) => `core/${layer}`);
const BOTTOM = LAYERS.length;

/** The code that the rules apply to; `package.json` and files of `sql` are data. */
const CODE = /^(apps|core|views|test)\//;

/** Where the SQL of replicas is, and which code may refer to it. */
const REPLICA_SQL = "sql/replica";
const REPLICA_OWNER = "core/replica/";

/** Creates pools without a budget, and who may: for the control plane, and within a budget. */
const WITHOUT_BUDGET = "connectServer";
const POOL_OWNERS = /^core\/(postgres\/|replica\/server-pools\.ts$)/;

const files = ["apps", "core", "views"].flatMap((folder) => repoFiles(folder)).filter(isCode);
const known = new Set(files);

/** The violations in one file. Types count like values: code that reads a type must read the type's layer. */
function violations(path: string, source: string): string[] {
  const found: string[] = [];
  const rule = RULES.find(({ from }) => path.startsWith(from));
  for (const imported of rule ? importsOf(source) : []) {
    if (!imported.startsWith(".")) continue;
    const target = resolve(join(dirname(path), imported));
    if (!CODE.test(target)) continue;
    if (!rule!.may.some((allowed) => `${target}/`.startsWith(allowed))) {
      found.push(`${path} imports ${target}: ${rule!.why}`);
    }
    const wrong = wrongLayer(path, target) ?? wrongDoor(path, target);
    if (wrong) found.push(`${path} imports ${target}: ${wrong}`);
  }
  if (rule && !path.startsWith(REPLICA_OWNER) && source.includes(REPLICA_SQL)) {
    found.push(`${path} names ${REPLICA_SQL}: only core/replica writes to a replica`);
  }
  if (rule && !POOL_OWNERS.test(path) && named(source).some(({ names }) => names.includes(WITHOUT_BUDGET))) {
    found.push(`${path} imports ${WITHOUT_BUDGET}: use serverPool, whose connections count in a budget`);
  }
  return found;
}

/** The paths of static and dynamic imports, and of re-exports, including types. */
function importsOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "");
  const statements = code.matchAll(
    /^(?:import|export)\s[^"';]*?from\s+"([^"]+)"|\bimport\(\s*"([^"]+)"|^import\s+"([^"]+)"/gm,
  );
  return [...statements].map(([, from, dynamic, effect]) => from ?? dynamic ?? effect!);
}

/** The file or folder index that an import refers to, without its extension. */
function resolve(target: string): string {
  return known.has(`${target}/index.ts`) ? `${target}/index` : target.replace(/\.tsx?$/, "");
}

/** The layer of a path: the longest match. */
function layerOf(path: string): string | undefined {
  const within = LAYERS.filter((layer) =>
    `${path.replace(/\.ts$/, "")}/`.startsWith(`${layer.replace(/\.ts$/, "")}/`),
  );
  return within.sort((a, b) => b.length - a.length)[0];
}

function wrongLayer(from: string, to: string): string | undefined {
  if (!from.startsWith("core/") || !to.startsWith("core/")) return undefined;
  const [own, others] = [layerOf(from), layerOf(to)];
  for (const [path, layer] of [
    [from, own],
    [to, others],
  ] as const) {
    if (!layer && path.split("/").length > 2) return `${dirname(path)} has no place in the order of layers`;
  }
  if (own === others) return undefined;
  const rank = (layer: string | undefined) => (layer ? LAYERS.indexOf(layer) : BOTTOM);
  return rank(others) > rank(own)
    ? undefined
    : `${others ?? "core's root"} is not below ${own ?? "core's root"}`;
}

function wrongDoor(from: string, to: string): string | undefined {
  const layer = layerOf(to);
  if (!layer || layer.endsWith(".ts") || layerOf(from) === layer || to === `${layer}/index`) return undefined;
  return `${layer} is entered by its index`;
}

test("every import points down and enters by the index, and only core/replica touches the SQL of replicas", () => {
  expect(files.length).toBeGreaterThan(10);
  const found = files.flatMap((path) => violations(path, readFileSync(join(repoRoot, path), "utf8")));
  expect(found).toEqual([]);
});

test("an index exports only what others import", () => {
  const used = new Set<string>();
  for (const path of files) {
    const source = readFileSync(join(repoRoot, path), "utf8");
    for (const { names, from } of named(source)) {
      for (const name of names) used.add(`${resolve(join(dirname(path), from))} ${name}`);
    }
  }
  const unused = LAYERS.filter((layer) => known.has(`${layer}/index.ts`)).flatMap((layer) => {
    const source = readFileSync(join(repoRoot, layer, "index.ts"), "utf8");
    const exported = named(source).filter(({ isExport }) => isExport);
    return exported.flatMap(({ names }) => names.map((name) => `${layer}/index ${name}`));
  });
  expect(unused.length).toBeGreaterThan(100);
  expect(unused.filter((name) => !used.has(name))).toEqual([]);
});

/** Imports and re-exports by name. */
function named(source: string) {
  const statements = source.matchAll(/^(import|export)(?: type)? \{([^}]*)\} from "(\.[^"]*)"/gm);
  return [...statements].map(([, word, list = "", from = ""]) => ({
    isExport: word === "export",
    names: list
      .split(",")
      .map((item) =>
        item
          .trim()
          .replace(/^type /, "")
          .replace(/ as .*/, ""),
      )
      .filter((name) => name !== ""),
    from,
  }));
}

test.for([
  ["core/sync/engine/a.ts", 'import { page } from "../../../views/page";'],
  ["core/sync/engine/a.ts", 'export * from "../../../apps/worker/sync-job";'],
  ["core/sync/engine/a.ts", 'const late = await import("../../../apps/worker/sync-job");'],
  ["views/pages/a.tsx", 'import { app } from "../../apps/console/app"; export const page = <p>{app}</p>;'],
  ["apps/proxy/a.ts", 'import { app } from "../console/app";'],
  ["apps/proxy/a.ts", 'import { page } from "../../views/page";'],
  ["apps/sandbox/a.ts", 'import { BasetideError } from "../../core/errors"; throw new BasetideError("x");'],
  ["apps/sandbox/a.ts", 'import { healthAnswers } from "../../core/http/service";'],
  ["apps/worker/a.ts", 'const file = "../../sql/replica/journal.sql";'],
  // Up instead of down: a value, a type, a re-export, a type in braces, from the bottom.
  ["core/replica/a.ts", 'import { getBase } from "../control/bases";'],
  ["core/sync/state/a.ts", 'import type { Sweep } from "../engine";'],
  ["core/sync/lease/a.ts", 'import type { Base } from "../../control/bases";'],
  ["core/sync/state/b.ts", 'export { fairShares } from "../../queue";'],
  ["core/postgres/a.ts", 'import { type Replica } from "../replica";'],
  ["core/errors.ts", 'import { within } from "./async";'],
  ["core/external/a.ts", 'import { startProcess } from "../process";'],
  // Past the index.
  ["core/sync/engine/a.ts", 'import { sign } from "../../replica/attachment-link";'],
  ["core/proxy/a.ts", 'import type { Cells } from "./reads/cells";'],
  ["apps/worker/a.ts", 'import { Heartbeat } from "../../core/limiter/heartbeat";'],
  ["views/base/a.tsx", 'import { indicatorOf } from "../../core/control/status/indicator";'],
  // A connection outside of the budget.
  ["core/control/placement/a.ts", 'import { connectServer } from "../../postgres";'],
  // A folder that is missing from the order.
  ["core/helpers/a.ts", 'import { BasetideError } from "../errors";'],
])("a planted violation is found: %s: %s", ([path, source]) => {
  expect(violations(path!, `${source}\nconsole.log(app, page, late);`)).toHaveLength(1);
});

test.for([
  ["core/sync/engine/a.ts", 'import { x } from "../../replica"; import postgres from "postgres";'],
  ["core/control/bases/a.ts", 'import { runs } from "./runs"; import { BasetideError } from "../../errors";'],
  ["core/external/a.ts", '/** As `import { x } from "../replica"` would. */'],
  ["apps/sandbox/a.ts", 'import { listen } from "../../core/http";'],
  ["apps/up/a.ts", 'import { startConsole } from "../console/start";'],
  ["core/replica/a.ts", 'const file = "../../sql/replica/journal.sql";'],
])("an allowed import passes: %s: %s", ([path, source]) => {
  expect(violations(path!, source!)).toEqual([]);
});

function isCode(path: string): boolean {
  return /\.tsx?$/.test(path);
}
