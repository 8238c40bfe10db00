/**
 * One page of a list answer. Its records are parsed only when they are read.
 *
 * If the answer has the usual form, its bytes are split and hashed unparsed (`split.ts`). Any other form (key order,
 * white space, look-alikes) is parsed as a whole and serialized again: slower, never wrong. A page that the caller knows
 * is not even split.
 */
import { BasetideError } from "../../errors";
import { isObject } from "../../json";
import { MAX_LEVELS, nestsDeeper } from "../../nesting";
import type { RecordPage, RememberedPage, SourceRecord, SourceTable, UnreadableRecord } from "../types";
import { holdsAttachment, tableMayHoldAttachments, withoutSignedUrls } from "./attachments";
import { pageDigest } from "./page-digest";
import { described, idOf, textIn } from "./parts";
import type { ReceivedBody } from "./received-body";
import { recognizedOffset, rememberPage } from "./remembered-page";
import { outlinePage, type PageOutline, splitPage } from "./split";
import { unsignedDigest } from "./unsigned-digest";

/** The most levels of a record that is searched for attachments: with more, the search could exhaust the stack. */
const MAX_SEARCHED_LEVELS = 1000;

/** Occurs in every attachment's JSON; text that begins like this costs only an extra parse. */
const ATTACHMENT_ID_OPENS = Buffer.from('"att');

/**
 * Reads a list answer.
 *
 * @param isKnown returns whether the caller has read a page with this digest before; without it, the page has no digest
 * @throws BasetideError `source_bad_answer` if the answer is not a list of records. `record` may still throw it if the
 *   answer is not valid JSON
 */
export function readPage(
  bytes: Buffer,
  table: SourceTable,
  isKnown?: (digest: number) => boolean,
): AirtablePage {
  const mayHold = tableMayHoldAttachments(table);
  if (!isKnown) return wholePage(bytes, mayHold, undefined);
  const { known, digest } = recognize(bytes, mayHold, isKnown, () => bytes);
  return known ?? wholePage(bytes, mayHold, digest);
}

/** What is known of a list whose pages may be recognized. */
interface KnownList {
  /** Returns whether the caller has read a page with this digest before. */
  isKnown: (digest: number) => boolean;
  /** The page that was read last at the same place. */
  before: RememberedPage | undefined;
  /** The requested offset. */
  requested: string | undefined;
}

/**
 * Reads a list answer, or recognizes it before it is decompressed.
 *
 * @throws BasetideError as `readPage`, and for a body that cannot be decompressed
 */
export function readReceivedPage(
  received: ReceivedBody,
  table: SourceTable,
  list?: KnownList,
): RecordPage | Promise<RecordPage> {
  return (list && recognized(received, table, list)) ?? decompressedPage(received, table, list);
}

async function decompressedPage(
  received: ReceivedBody,
  table: SourceTable,
  list: KnownList | undefined,
): Promise<RecordPage> {
  const page = list ? await recognizeOrRead(received, table, list) : readPage(await received.text(), table);
  page.body = received;
  return page;
}

/** Recognizes the remembered page by its checksum. */
function recognized(
  received: ReceivedBody,
  table: SourceTable,
  { isKnown, before, requested }: KnownList,
): RecordPage | undefined {
  const checksum = before && received.checksum();
  if (!checksum || !isKnown(before.digest)) return undefined;
  const offset = recognizedOffset(before, checksum, requested);
  if (offset === null) return undefined;
  const { firstId, digest } = before;
  const whole = () => wholePage(received.textNow(), tableMayHoldAttachments(table), digest);
  const page = new KnownPage({ firstId, offset }, digest, whole, before);
  page.body = received;
  return page;
}

async function recognizeOrRead(
  received: ReceivedBody,
  table: SourceTable,
  { isKnown }: KnownList,
): Promise<AirtablePage> {
  const again = () => received.textNow();
  const checksum = received.checksum();
  const mayHold = tableMayHoldAttachments(table);
  const text = received.briefText() ?? (await received.text());
  const { known, digest } = recognize(text, mayHold, isKnown, again);
  const page = known ?? wholePage(received.keep(text), mayHold, digest);
  // A body of several members states only the length of the last one's text.
  if (digest !== undefined && checksum?.length === text.length)
    page.remembered = rememberPage(checksum, page.offset, { digest, firstId: page.firstId });
  return page;
}

/**
 * Looks at a list answer without its records.
 *
 * @param again returns the bytes again, when records of a known page are looked at after all: until then, its bytes are
 *   not used
 * @returns the page if it is known; its digest, if it has one
 */
function recognize(
  bytes: Buffer,
  mayHold: boolean,
  isKnown: (digest: number) => boolean,
  again: () => Buffer,
): { known?: KnownPage; digest: number | undefined } {
  const outline = outlinePage(bytes);
  if (!outline) return { digest: undefined };
  const { listEnd } = outline;
  const digest = mayHold
    ? (unsignedDigest(bytes, listEnd) ?? undefined)
    : pageDigest(bytes.subarray(0, listEnd));
  if (digest === undefined || !isKnown(digest)) return { digest };
  return { digest, known: new KnownPage(outline, digest, () => wholePage(again(), mayHold, digest)) };
}

type AirtablePage = Page | KnownPage;

function wholePage(bytes: Buffer, mayHold: boolean, digest: number | undefined): Page {
  const split = splitPage(bytes);
  // Of a record that occurs twice, only the last would be parsed: what is wrong with the others would not be seen.
  if (split === null || new Set(split.ids).size < split.ids.length) return parsedPage(bytes, mayHold);
  const { starts, ends, ids, offset } = split;
  const slice = (index: number) => bytes.subarray(starts[index], ends[index]);
  return new Page(ids, offset, mayHold, slice, digest);
}

/** Reads the page with `JSON.parse`. */
function parsedPage(bytes: Buffer, mayHold: boolean): Page {
  const answer = parse(new TextDecoder().decode(bytes), "a list of records");
  if (!isObject(answer) || !Array.isArray(answer.records)) throw bad("a list answer has no records");
  const { records: items, offset = null } = answer;
  if (offset !== null && typeof offset !== "string") throw bad("the offset of a list is not text");
  const records: SourceRecord[] = [];
  const read: unknown[] = [];
  const unreadable: UnreadableRecord[] = [];
  for (const item of items) {
    const record = readRecord(item);
    if ("reason" in record) unreadable.push(record);
    else if (nestsDeeper(item, MAX_LEVELS)) unreadable.push({ id: record.id, reason: "it nests too deeply" });
    else {
      records.push(record);
      read.push(item);
    }
  }
  const last = new Map(records.map(({ id }, index) => [id, index]));
  const twice = new Set(records.filter(({ id }, index) => last.get(id) !== index).map(({ id }) => id));
  for (const id of twice) unreadable.push({ id, reason: "it occurs twice in an answer" });
  const kept = [...last.values()];
  const slice = (index: number) => Buffer.from(JSON.stringify(read[kept[index]!]));
  const parsed = kept.map((index) => records[index]);
  return new Page([...last.keys()], offset || undefined, mayHold, slice, undefined, parsed, unreadable);
}

class Page implements RecordPage {
  readonly size: number;
  readonly unreadable: readonly UnreadableRecord[] | undefined;
  readonly offset: string | undefined;
  readonly digest: number | undefined;
  remembered: RememberedPage | undefined;
  /** What it was read from. */
  body: ReceivedBody | undefined;
  readonly #ids: string[];
  readonly #mayHold: boolean;
  /** Returns the JSON of a record, in UTF-8. */
  readonly #slice: (index: number) => Buffer;
  readonly #parsed: (SourceRecord | undefined)[];
  /** The fingerprints of records with attachments; undefined for others. */
  readonly #unsigned: (bigint | undefined)[] = [];
  readonly #attached: boolean[] = [];

  constructor(
    ids: string[],
    offset: string | undefined,
    mayHold: boolean,
    slice: (index: number) => Buffer,
    digest: number | undefined,
    parsed: (SourceRecord | undefined)[] = [],
    unreadable: UnreadableRecord[] = [],
  ) {
    this.offset = offset;
    this.digest = digest;
    this.#mayHold = mayHold;
    this.#ids = ids;
    this.#slice = slice;
    this.#parsed = parsed;
    this.size = this.#ids.length;
    this.unreadable = unreadable.length > 0 ? unreadable : undefined;
  }

  get firstId(): string | undefined {
    return this.#ids[0];
  }

  id(index: number): string {
    const id = this.#ids[index];
    if (id === undefined) throw new RangeError(`The page has ${this.size} records, none at ${index}`);
    return id;
  }

  fingerprint(index: number): bigint {
    if (!this.hasAttachments(index)) return Bun.hash.wyhash(this.#slice(index));
    const known = this.#unsigned[index];
    if (known !== undefined) return known;
    const fingerprint = Bun.hash.wyhash(JSON.stringify(withoutSignedUrls(this.record(index))));
    this.#unsigned[index] = fingerprint;
    return fingerprint;
  }

  record(index: number): SourceRecord {
    const parsed = this.#parsed[index];
    if (parsed !== undefined) return parsed;
    const id = this.id(index);
    const record = asRecord(parse(this.#slice(index).toString("utf8"), `record ${id}`));
    if (record.id !== id) throw bad(`record ${id} has the id ${record.id}`);
    this.#parsed[index] = record;
    return record;
  }

  hasAttachments(index: number): boolean {
    if (!this.#mayHold) return false;
    this.#attached[index] ??=
      this.#slice(index).includes(ATTACHMENT_ID_OPENS) &&
      !nestsDeeper(this.record(index), MAX_SEARCHED_LEVELS) &&
      holdsAttachment(this.record(index).fields);
    return this.#attached[index]!;
  }

  discard(): void {
    this.body?.discard();
  }
}

/** A page of which an equal one was read before: it is split when its records are looked at after all. */
class KnownPage implements RecordPage {
  readonly firstId: string | undefined;
  readonly offset: string | undefined;
  readonly digest: number;
  remembered: RememberedPage | undefined;
  /** What it was recognized in. */
  body: ReceivedBody | undefined;
  readonly #read: () => RecordPage;
  #page: RecordPage | undefined;

  constructor(
    { firstId, offset }: Pick<PageOutline, "firstId" | "offset">,
    digest: number,
    read: () => RecordPage,
    remembered?: RememberedPage,
  ) {
    this.firstId = firstId;
    this.offset = offset;
    this.digest = digest;
    this.remembered = remembered;
    this.#read = read;
  }

  get #whole(): RecordPage {
    this.#page ??= this.#read();
    return this.#page;
  }

  get size(): number {
    return this.#whole.size;
  }

  /** Equal pages were read completely before. */
  get unreadable(): readonly UnreadableRecord[] | undefined {
    return this.#page?.unreadable;
  }

  id(index: number): string {
    return this.#whole.id(index);
  }

  fingerprint(index: number): bigint {
    return this.#whole.fingerprint(index);
  }

  record(index: number): SourceRecord {
    return this.#whole.record(index);
  }

  hasAttachments(index: number): boolean {
    return this.#whole.hasAttachments(index);
  }

  discard(): void {
    this.body?.discard();
  }
}

/**
 * Returns a record of an answer.
 *
 * @throws BasetideError `source_bad_answer` if it has no id or no fields, with the detail `isRecord`
 */
export function asRecord(value: unknown): SourceRecord {
  const record = readRecord(value);
  if (!("reason" in record)) return record;
  const { id = "without an id", reason } = record;
  throw new BasetideError("source_bad_answer", `Airtable's record ${id} cannot be read: ${reason}`, {
    details: { isRecord: true },
  });
}

/** Reads a record. A creation time that cannot be read is mapped to one that says so. */
function readRecord(value: unknown): SourceRecord | UnreadableRecord {
  const id = idOf("rec", value);
  if (id === undefined || !isObject(value))
    return { reason: `not a record id (rec…): ${described(isObject(value) ? value.id : value)}` };
  const { createdTime, fields } = value;
  if (!isObject(fields)) return { id, reason: `fields: expected an object, not ${described(fields)}` };
  return { id, createdTime: textIn(createdTime) ?? "", fields };
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new BasetideError("source_bad_answer", `Airtable's answer is invalid: ${what} is not JSON`, {
      cause,
    });
  }
}

function bad(reason: string): BasetideError {
  return new BasetideError("source_bad_answer", `Airtable's answer has an unexpected form: ${reason}`);
}
