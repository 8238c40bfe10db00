/** A platform's limits and id forms are in its adapter, so that another platform is one more folder. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { airtablePlans, limits, webhookLimits } from "../../core/source/airtable/limits";
import { limitsOfKey, platformFacts, proxied, strictest } from "../../core/source/registry";

const ROOT = new URL("../../", import.meta.url);
/** The adapter; the sandbox, which simulates Airtable; and what is generated from the API's description. */
const AT_HOME = ["core/source/airtable/", "apps/sandbox/", "apps/cli/client/"];
/** Text for people, and defaults of the configuration that name Airtable's host. */
const TEXTS = new Set([
  "core/config.ts",
  "views/base/snippets.ts",
  "views/base/proxy.tsx",
  "views/base/write-snippets.ts",
  "views/site/landing.tsx",
  "apps/up/describe.ts",
]);
/** The section Team of the console has the name of a plan. */
const TEAM_PAGES = new Set([
  "views/frame/sidebar.tsx",
  "apps/console/routes/pages/activity.tsx",
  "apps/console/routes/pages/members.tsx",
]);
/** The two places that name the adapter. */
const REGISTRY = new Set(["core/source/registry.ts", "core/source/index.ts"]);
/** The format of cells, into which every adapter converts its own, identifies attachments by their ids. */
const CELL_SHAPE = new Set(["core/source/attachments.ts"]);

/** Signs of Airtable-specific facts in code. */
const RULES: [what: string, pattern: RegExp, exempt: ReadonlySet<string>][] = [
  ["its name", /["'`/]airtable["'`/.:]/, new Set([...TEXTS, ...REGISTRY])],
  ["its adapter's files", /source\/airtable|\.\/airtable/, REGISTRY],
  ["its hosts", /airtable\.com/, TEXTS],
  ["the form of an id", /["'`/^(](app|tbl|fld|rec|att|viw)(\[[\da-zA-Z]|["'`]\))/, CELL_SHAPE],
  [
    "a refusal's word",
    /BILLING_LIMIT_EXCEEDED|INVALID_HOOK|INVALID_FILTERS/,
    new Set(["core/source/change-feed.ts"]),
  ],
  ["a plan", /["'](team|business)["']/, TEAM_PAGES],
  [
    "a limit",
    /(RATE_LIMIT_PAUSE\w*|PENALTY_MS|PER_USER|PER_WINDOW|MAX_PAGE_SIZE|MAX_WEBHOOKS_PER_BASE)\s*=\s*\d/,
    new Set(),
  ],
];
const SQL_LIMIT =
  /\b(throttled_per_window|per_window|per_user|sync_per_user)\s+(constant\s+)?integer\s*:=\s*\d/;

const inCode = (file: string, text: string): string[] =>
  RULES.filter(([, pattern, exempt]) => !exempt.has(file) && pattern.test(withoutComments(text))).map(
    ([what]) => `${file} holds ${what}`,
  );

test("only the adapter contains Airtable's name, hosts, id forms, plans or limits", () => {
  const found = files(["core", "apps", "views"], /\.tsx?$/)
    .filter((file) => !AT_HOME.some((folder) => file.startsWith(folder)))
    .flatMap((file) => inCode(file, read(file)));
  expect(found).toEqual([]);
});

test("a planted one of each is found", () => {
  const planted: [string, string][] = [
    ['const PLATFORM = "airtable";', "its name"],
    ['import { x } from "../source/airtable/limits";', "its adapter's files"],
    ["const url = 'https://airtable.com/' + id;", "its hosts"],
    ["const ID = /^rec[0-9A-Za-z]+$/;", "the form of an id"],
    ['if (id.startsWith("fld")) x();', "the form of an id"],
    ['const LIMIT = "PUBLIC_API_BILLING_LIMIT_EXCEEDED";', "a refusal's word"],
    ['const SLOWED: Plan = "team";', "a plan"],
    ["const RATE_LIMIT_PAUSE_MS = 30_000;", "a limit"],
  ];
  for (const [code, what] of planted)
    expect(inCode("core/x.ts", code), code).toContain(`core/x.ts holds ${what}`);
  expect(inCode("core/x.ts", '/** As "airtable" has it. */\nconst x = 1; // "team"')).toEqual([]);
});

test("SQL functions get the limits as arguments", () => {
  const holding = files(["sql/control/functions"], /\.sql$/).filter((file) => SQL_LIMIT.test(read(file)));
  expect(holding).toEqual([]);
  expect("  per_window integer := 5;").toMatch(SQL_LIMIT);
});

test("a key uses its platform's limits, and one of no platform the strictest", () => {
  expect(limitsOfKey("airtable:appX")).toBe(limits);
  for (const key of ["", "appX", "other:appX", ":appX"]) expect(limitsOfKey(key)).toEqual(strictest());
  for (const one of platformFacts) {
    expect(one.limits.requestsPerWindow).toBeGreaterThanOrEqual(strictest().requestsPerWindow);
  }
  expect(proxied.dialect.version).toBe("v0");
  expect({ limits, plans: airtablePlans.length, webhookLimits }).toMatchObject({
    plans: 3,
    webhookLimits: { maxPerBase: 10 },
  });
});

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "");
}

function files(folders: string[], name: RegExp): string[] {
  return folders.flatMap((folder) =>
    readdirSync(new URL(folder, ROOT), { recursive: true, encoding: "utf8" })
      .filter((file) => name.test(file))
      .map((file) => `${folder}/${file}`),
  );
}

function read(file: string): string {
  return readFileSync(new URL(file, ROOT), "utf8");
}
