/** Holds the vocabulary: one name for one thing, no retired words, and a glossary that points at files that exist. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repoFiles, repoRoot } from "../support/source-files";

const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");
const isCode = (path: string) => /\.tsx?$/.test(path);
const source = ["core", "apps", "views"].flatMap((folder) => repoFiles(folder)).filter(isCode);

const EXPORT =
  /^export (?:declare )?(?:default )?(?:abstract )?(?:async )?(?:function\*?|class|const|let|type|interface|enum) (\w+)/gm;

/** Names declared with `export`; `export { … } from` declares nothing. */
function exportedNames(text: string): Set<string> {
  return new Set(Array.from(text.matchAll(EXPORT), ([, name]) => name!));
}

/** Each name that more than one file declares, with its files. */
function duplicates(files: Iterable<[path: string, text: string]>): string[] {
  const paths = new Map<string, string[]>();
  for (const [path, text] of files)
    for (const name of exportedNames(text)) paths.set(name, [...(paths.get(name) ?? []), path]);
  return [...paths]
    .filter(([, where]) => where.length > 1)
    .map(([name, where]) => `${name}: ${where.join(", ")}`);
}

test("no two files export the same name", () => {
  expect(duplicates(source.map((path) => [path, read(path)]))).toEqual([]);
});

test("a planted duplicate is found, and a re-export is none", () => {
  const one = "export interface Lease {}";
  expect(
    duplicates([
      ["a.ts", one],
      ["b.ts", "export class Lease {}"],
    ]),
  ).toEqual(["Lease: a.ts, b.ts"]);
  expect(
    duplicates([
      ["a.ts", one],
      ["index.ts", 'export type { Lease } from "./a";'],
    ]),
  ).toEqual([]);
});

/**
 * Retired names, which occur nowhere: not in code, comments, SQL, docs or views. Keys are matched as whole words; the value is
 * what to write instead. Add a name here when you rename something that people may remember.
 */
const RETIRED: Record<string, string> = {
  // core/limiter
  createLane: "createWaitQueue",
  createLedger: "createRateLimiter",
  gaveOut: "recordGrant",
  LedgerOptions: "RateLimiterOptions",
  LocalWindow: "FallbackLimiter",
  quota_attend: "quota_heartbeat",
  quota_hasten: "quota_unthrottle",
  quota_late: "quota_report_late",
  quota_leave: "quota_carry_over",
  quota_slowed: "quota_throttled",
  quota_take: "quota_acquire",
  reunite: "rejoin",
  standsInAs: "instanceId",
  sync_slots: "sync_reservations",
  takeClient: "acquireClient",
  takeSync: "acquireSync",
  takeUnproven: "acquireUnproven",
  unproven_slots: "unproven_reservations",
  wentLate: "reportLateSend",
  // secrets
  rotateSeals: "rotateEncryption",
  sealed: "encrypted",
  sealed_api_key: "encrypted_api_key",
  sealed_url: "encrypted_url",
  sealedApiKey: "encryptedApiKey",
  unsealApiKey: "decryptApiKey",
  // core/proxy, core/attachments, core/postgres, core/source
  againIfStale: "MeteredSource",
  askedSslMode: "requestedSslMode",
  AttachmentPlace: "AttachmentRef",
  ImagesOfRecords: "RowImages",
  noted_at: "recorded_at",
  noteRateLimit: "recordRateLimit",
  PING_MAC_HEADER: "NOTIFICATION_MAC_HEADER",
  postgresLine: "postgresOptions",
  putOff: "reschedule",
  RecordLine: "RecordQueue",
  RequestLook: "RequestSchemaCheck",
  schema_look_requested_at: "schema_check_requested_at",
  SourceHook: "SourceWebhook",
  // core/replica, core/sync, core/control
  ailmentsOf: "checkHostedDatabase",
  apply_images: "apply_row_images",
  applyImages: "applyRowImages",
  BaseMemory: "BaseCache",
  followExtras: "applyOptionalFeatures",
  guardDatabase: "lockDownDatabase",
  hasPings: "hasNotifications",
  HeldBase: "LeasedBase",
  hook_id: "webhook_id",
  journalSince: "recentWritesSince",
  keepHouse: "runHousekeeping",
  keepRun: "saveRun",
  look_at_schema: "check_schema",
  noteGap: "recordFeedGap",
  noteStale: "recordDrift",
  pinged_at: "notified_at",
  takeTicket: "takeReadVersion",
  // tests
  boundlessLedger: "unlimitedLimiter",
  cuttableLine: "cuttableProxy",
  faultLine: "faultProxy",
};

/** Parts of names that are retired: an exported name with one of them between its capitals is private jargon. */
const RETIRED_PARTS =
  /(?:^|[a-z0-9_])(?:Ledger|Lane|Booking|Ailment|Trouble|Mendable|Seal|Sealed|Together|Standin|Lateness)(?![a-z])/;

/** The pages that describe the past, or list retired words. */
const SKIPPED = /^CHANGELOG\.md$|^bun\.lock$|^patches\/|vocabulary\.test\.ts$/;
const TEXT = /\.(?:tsx?|sql|md|json|ya?ml|css|js)$/;

const retired = new RegExp(`(?<![\\w$])(?:${Object.keys(RETIRED).join("|")})(?![\\w$])`, "g");

function retiredIn(path: string, text: string): string[] {
  return Array.from(text.matchAll(retired), ([word]) => `${path}: ${word} is now ${RETIRED[word]}`);
}

test("no retired name is used anywhere", () => {
  const files = repoFiles().filter((path) => TEXT.test(path) && !SKIPPED.test(path));
  expect(files.flatMap((path) => retiredIn(path, read(path)))).toEqual([]);
});

test("no exported name contains a retired word", () => {
  const found = source.flatMap((path) =>
    [...exportedNames(read(path))]
      .map((name) => name[0]!.toUpperCase() + name.slice(1))
      .filter((name) => RETIRED_PARTS.test(name))
      .map((name) => `${path}: ${name}`),
  );
  expect(found).toEqual([]);
});

test("a planted retired name is found", () => {
  expect(retiredIn("a.sql", "select quota_take('key')")).toEqual(["a.sql: quota_take is now quota_acquire"]);
  expect(retiredIn("a.sql", "select quota_take_two('key')")).toEqual([]);
});

interface Term {
  name: string;
  files: string[];
}

/** The glossary's terms in their order, with the files that each names. */
function glossaryTerms(): Term[] {
  return read("docs/glossary.md")
    .split(/\n{2,}/)
    .flatMap((paragraph) => {
      const [, name] = /^\*\*(.+?)\.\*\*/.exec(paragraph) ?? [];
      if (name === undefined) return [];
      const files = Array.from(paragraph.matchAll(/`([\w./-]+\/[\w.-]+\.\w+)`/g), ([, file]) => file!);
      return [{ name, files }];
    });
}

test("each term of the glossary names a file that exists", () => {
  const terms = glossaryTerms();
  expect(terms.length).toBeGreaterThan(35);
  expect(terms.filter(({ files }) => files.length === 0).map(({ name }) => name)).toEqual([]);
  const gone = terms.flatMap(({ name, files }) =>
    files.filter((file) => !existsSync(join(repoRoot, file))).map((file) => `${name}: ${file}`),
  );
  expect(gone).toEqual([]);
});

test("the glossary is in alphabetical order", () => {
  const names = glossaryTerms().map(({ name }) => name);
  expect(names).toEqual(names.toSorted((a, b) => a.localeCompare(b, "en")));
});
