/**
 * Writes the account into the file. Comments, the order of entries, and everything that only people write (api_key) stay;
 * new entries come last. The same account gives the same bytes.
 */
import { Document, isMap, isSeq, Scalar, type YAMLMap, type YAMLSeq } from "yaml";
import { apiFacts } from "../client";
import { CliError } from "../failure";
import { baseParts } from "./base-parts";
import { shown } from "./difference";
import type { ParsedContract } from "./parse";
import { baseKey, VERSION } from "./schema";
import type { AccountState } from "./state";

const HEAD = ` The bases of this account, and how they are copied. \`basetide diff\` compares, \`basetide apply\` makes it so.
 Secrets come from the environment: \${NAME}.`;

/** What the sections are, above their keys in a new file. */
const ABOUT = {
  workspaces: " Caps on calls to Airtable; the bases of a workspace share one.",
  bases: ` By their ids in Airtable. A base that is not connected needs api_key: \${NAME}.`,
  alerts: " Members get e-mails; webhooks get messages.",
} as const;

/** An entry of a list. Values that are undefined are removed; those in `own` stay as people wrote them. */
interface Entry {
  /** Entries of the file and of the account with the same key are the same thing. */
  key: string;
  values: Record<string, unknown>;
  isOwn?: (name: string, written: unknown) => boolean;
}

/**
 * @param latest by base id: when its last schema change was seen
 * @throws CliError `ambiguous` if two webhooks have the same name
 */
export function pulled(
  state: AccountState,
  latest: ReadonlyMap<string, string>,
  before?: ParsedContract,
): string {
  const document = before?.document ?? emptyDocument();
  document.set("version", VERSION);
  const isNew = Object.keys(ABOUT).filter((section) => !document.has(section));
  if (state.workspaces.length > 0 || document.has("workspaces"))
    merge(document, ["workspaces"], state.workspaces.map(workspaceEntry), ({ name }) => String(name));
  merge(
    document,
    ["bases"],
    state.bases.map((base) => baseEntry(base, state, latest.get(base.id))),
    (written) => baseKey(written as { base: string; platform?: string }),
  );
  writeMembers(document, state.alerts);
  const { webhooks } = state.alerts;
  if (webhooks.length > 0 || document.hasIn(["alerts", "webhooks"])) {
    const twice = webhooks.find(({ name }, index) => webhooks.findIndex((one) => one.name === name) < index);
    if (twice)
      throw new CliError("ambiguous", `Two webhooks are called ${twice.name}. Rename one in the console.`);
    merge(document, ["alerts", "webhooks"], webhooks.map(webhookEntry), ({ name }) => String(name));
  }
  for (const section of isNew) describe(document, section as keyof typeof ABOUT);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function emptyDocument(): Document {
  const document = new Document({ version: VERSION });
  document.commentBefore = HEAD;
  return document;
}

function describe({ contents }: Document, section: keyof typeof ABOUT): void {
  const pair = isMap(contents) ? contents.items.find(({ key }) => String(key) === section) : undefined;
  if (!pair) return;
  const key = new Scalar(section);
  key.commentBefore = ABOUT[section];
  pair.key = key;
}

function workspaceEntry({ name, plan, calls_per_month, reserve }: AccountState["workspaces"][number]): Entry {
  const calls = plan === "custom" ? calls_per_month : undefined;
  return { key: name, values: { name, plan, calls_per_month: calls, reserve } };
}

function baseEntry(base: AccountState["bases"][number], state: AccountState, latest?: string): Entry {
  const { base_id, name, platform } = base;
  return {
    key: baseKey({ base: base_id, platform }),
    values: {
      base: base_id,
      name,
      platform: platform === apiFacts.defaultPlatform ? undefined : platform,
      ...Object.fromEntries(baseParts.map((part) => [part.key, part.read(base, state)])),
      schema_as_of: latest,
    },
    isOwn: (written, value) =>
      baseParts.some(({ key, isOwn }) => key === written && isOwn?.(value, base, state)) ||
      // An explicit platform is the same as none.
      (written === "platform" && value === platform),
  };
}

function webhookEntry({ name, form, kinds, on }: AccountState["alerts"]["webhooks"][number]): Entry {
  return {
    key: name,
    values: { name, url: variableFor(name), form, kinds: ordered(kinds), on },
    // The service does not show it again.
    isOwn: (written) => written === "url",
  };
}

/** The URL of a webhook is not shown again; to create it elsewhere, set this variable. */
function variableFor(name: string): string {
  const word = name
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "");
  return `\${${/^[A-Z]/.test(word) ? word : `HOOK_${word}`}_WEBHOOK_URL}`;
}

function ordered(kinds: readonly string[]): string[] {
  return apiFacts.alertKinds.filter((kind) => kinds.includes(kind));
}

function writeMembers(document: Document, { members }: AccountState["alerts"]): void {
  const written = document.getIn(["alerts", "members"], true);
  if (isMap(written)) {
    const emails = new Set(members.map(({ email }) => email));
    written.items = written.items.filter(({ key }) => emails.has(String((key as Scalar).value)));
  }
  for (const { email, kinds } of members.toSorted((a, b) => (a.email < b.email ? -1 : 1))) {
    const path = ["alerts", "members", email];
    const node = document.getIn(path, true);
    if (!isSame(plain(node, document), kinds))
      document.setIn(path, document.createNode(ordered(kinds), { flow: true }));
  }
}

/** Makes the list hold these entries: existing ones keep their place and their comments. */
function merge(
  document: Document,
  path: string[],
  entries: Entry[],
  keyOf: (written: Record<string, unknown>) => string,
): void {
  const before = document.getIn(path, true);
  const missing = new Map(entries.map((entry) => [entry.key, entry]));
  const list = isSeq(before) ? (before as YAMLSeq<YAMLMap>) : (document.createNode([]) as YAMLSeq<YAMLMap>);
  // An empty list that was written as [] gets a line per entry.
  if (list.items.length === 0) list.flow = false;
  list.items = list.items.filter((item) => {
    const key = isMap(item) ? keyOf(plain(item, document) as Record<string, unknown>) : undefined;
    const entry = key === undefined ? undefined : missing.get(key);
    if (!entry) return false;
    missing.delete(entry.key);
    update(document, item, entry.values, entry.isOwn);
    return true;
  });
  for (const { values } of [...missing.values()].sort((a, b) => (a.key < b.key ? -1 : 1)))
    list.items.push(entryNode(document, values));
  if (list.items.length === 0) list.flow = true;
  if (list !== before) document.setIn(path, list);
}

/** A new entry; its lists are on one line. */
function entryNode(document: Document, values: Entry["values"]): YAMLMap {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  const node = document.createNode(Object.fromEntries(given)) as YAMLMap;
  for (const { value } of node.items) if (isSeq(value)) value.flow = true;
  return node;
}

/** Writes only what differs, so that comments and the form of the rest stay. */
function update(document: Document, item: YAMLMap, values: Entry["values"], isOwn?: Entry["isOwn"]): void {
  for (const [name, value] of Object.entries(values)) {
    const node = item.get(name, true);
    const written = plain(node, document);
    if (written !== undefined && isOwn?.(name, written)) continue;
    if (value === undefined) item.delete(name);
    else if (isMap(node) && typeof value === "object" && value !== null && !Array.isArray(value)) {
      node.items = node.items.filter(({ key }) => String(key) in value);
      update(document, node, value as Entry["values"]);
    } else if (node === undefined || !isSame(written, value)) setValue(document, item, name, value);
  }
}

/** A scalar keeps its node, and with it the comment behind it. */
function setValue(document: Document, item: YAMLMap, name: string, value: unknown): void {
  if (typeof value === "object" && value !== null)
    item.set(name, document.createNode(value, { flow: Array.isArray(value) }));
  else item.set(name, value);
}

/** The value of a node as JSON. */
function plain(node: unknown, document: Document): unknown {
  return (node as { toJS?: (document: Document) => unknown } | undefined)?.toJS?.(document);
}

/** Lists are sets. */
function isSame(one: unknown, other: unknown): boolean {
  return one !== undefined && shown(one) === shown(other);
}
