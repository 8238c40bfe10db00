/**
 * Names and descriptions of Airtable in the formats of other programs, read by the parsers of those programs: whatever a
 * text contains, it stays a text.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Lexer, type Token, walkTokens } from "marked";
import mermaid from "mermaid";
import { createTransport } from "nodemailer";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { subjectOf, textOf } from "../../../core/alerts/format";
import type { Alert } from "../../../core/alerts/kinds";
import { bodyOf } from "../../../core/alerts/payload";
import { csvCell, csvHeader, csvLine } from "../../../core/csv";
import { dbtSources, erDiagram, typesIn } from "../../../core/exports";
import { planSchema, type TableSpec } from "../../../core/replica";
import { visibleText } from "../../../core/visible-text";
import { sourceTable } from "../../support/source-records";

const PYTHON = "/usr/bin/python3";
const TIMEOUT_MS = 60_000;
const CONSOLE = "https://console.example.com";

/** Line separators, quotes, comments and marks of the languages that the texts are written into. */
const parts = fc.constantFrom(
  ..."\n \r\n \r \v \f \u0085 \u2028 \u2029 \u0000 \u001b \ufeff \ufffe \ud800 \u202e \u2066 \u200b".split(
    " ",
  ),
  ..."' \" ` \\ ''' \"\"\" */ /* // -- # <!-- --> %% <% %> $ \u0024{ } {{ {% {# }} %} #} [ ]( ) < > & | > : - ? @ ! * ~ = << ,"
    .split(" ")
    .filter(Boolean),
  ..."y no on null ~ 1:30 0x1f 0o7 1_000 1e3 2024-01-01 .inf %YAML --- ... =1+1 +1 -1 @all @channel <!here>".split(
    " ",
  ),
  'tests:\n- not_null:\u2028    config:\u2028      where: "1=1"',
  "https://example.org",
  "[link](https://example.org)",
  "direction LR",
  "#lt;b#gt;",
  "%%{init: {}}%%",
  " ",
  "a",
  "é",
  "名",
  "😀",
);
const hostile = fc.array(parts, { minLength: 1, maxLength: 12 }).map((some) => some.join(""));
const texts = (count: number) => fc.sample(hostile, { numRuns: count, seed: SEED });
const SEED = Number(process.env.TEXTS_SEED) || Date.now() & 0xffff_ffff;

const base = {
  name: "b",
  sourceBaseId: "app1",
  database: { name: "bt_1", schema: "public" },
};

/** A table that has this text as its name, its description, and those of a field that links to itself. */
function specOf(text: string): TableSpec {
  const named = sourceTable("tblP", text, { [text]: "links" });
  named.description = text;
  Object.assign(named.fields[0]!, { linkedTableId: "tblP", description: text });
  const settings = { linkedRecordsAsText: false, lookupsAsText: false };
  return planSchema(new Map(), { tables: [named] }, settings).rebuild[0]!;
}

/** Runs the program with one JSON value on a file that it is told of. @returns the JSON that it prints */
async function python<T>(program: string, input: unknown): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "basetide-texts-"));
  try {
    const path = join(folder, "input.json");
    writeFileSync(path, JSON.stringify(input));
    const child = Bun.spawn([PYTHON, "-c", program, path], { stdout: "pipe", stderr: "pipe" });
    const [out, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(await child.exited, `seed ${SEED}: ${errors}`).toBe(0);
    return JSON.parse(out) as T;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const hasPython = (modules: string) => Bun.spawnSync([PYTHON, "-c", `import ${modules}`]).exitCode === 0;

/** Reads each text by both loaders of PyYAML, and renders every string of it by Jinja, as dbt does. */
const READ_YAML = `
import json, sys, yaml, jinja2
def rendered(value):
    if isinstance(value, str): return jinja2.Environment(keep_trailing_newline=True).from_string(value).render()
    if isinstance(value, list): return [rendered(one) for one in value]
    if isinstance(value, dict): return {rendered(key): rendered(one) for key, one in value.items()}
    return value
read = []
for text in json.load(open(sys.argv[1])):
    loaders = [yaml.SafeLoader] + ([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])
    found = [yaml.load(text, Loader=loader) for loader in loaders]
    assert all(one == found[0] for one in found), text
    read.append(rendered(found[0]))
print(json.dumps(read))
`;

test("dbt's parsers read the YAML of any base as this program's does, and its texts unchanged", {
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!hasPython("yaml, jinja2"), "PyYAML or Jinja is not installed");
  const cases = texts(400).map((text) => {
    const input = {
      base: { ...base, name: text },
      tables: [specOf(text)],
      linkViews: [],
      attachmentViews: [],
    };
    const staging = typesIn("dbt", { ...input, choicesOf: () => undefined });
    return {
      text,
      sources: dbtSources(input.base, input),
      staging: staging.find(({ path }) => path === "staging.yml")!.text,
    };
  });
  const found = await python<Read[]>(
    READ_YAML,
    cases.flatMap(({ sources, staging }) => [sources, staging]),
  );
  for (const [index, { text, sources, staging }] of cases.entries()) {
    const [source, models] = [found[2 * index]!, found[2 * index + 1]!];
    const [spec] = [specOf(text)];
    expect(shapeOf(source), `seed ${SEED}`).toEqual(shapeOf(parse(sources)));
    expect(shapeOf(models), `seed ${SEED}`).toEqual(shapeOf(parse(staging)));
    const [table] = source.sources![0]!.tables;
    expect(table!.description).toBe(visibleText(`${spec!.sourceName} (tblP)\n\n${spec!.description}`));
    expect(table!.columns.map(({ name }) => name)).toEqual(["id", "created_time", spec!.columns[0]!.name]);
    expect(table!.columns[2]!.data_type).toBe("text[]");
    expect(Object.keys(table!.columns[2]!).sort()).toEqual(["data_type", "description", "name", "quote"]);
  }
});

interface Read {
  sources?: { tables: { description: string; columns: Record<string, string>[] }[] }[];
}

/** The value with its texts as their kind only: one of the readers has rendered them. */
function shapeOf(value: unknown): unknown {
  if (typeof value === "string") return "text";
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shapeOf(one)]));
}

test("Mermaid reads the diagram of any base as one box with a line to itself", {
  timeout: TIMEOUT_MS,
}, async () => {
  // Loads the parser.
  await mermaid.parse(erDiagram([specOf("a")]));
  for (const text of texts(300)) {
    const read = await mermaid.mermaidAPI.getDiagramFromText(erDiagram([specOf(text)]));
    const db = read.db as unknown as {
      getEntities(): Map<string, { attributes: { name: string }[] }>;
      getRelationships(): unknown[];
    };
    const [box, ...others] = [...db.getEntities().values()];
    expect(others, `seed ${SEED}`).toEqual([]);
    expect(box!.attributes.map(({ name }) => name).slice(0, 2)).toEqual(["id", "created_time"]);
    expect(box!.attributes).toHaveLength(3);
    expect(db.getRelationships()).toHaveLength(1);
  }
});

const READ_CSV = `
import csv, io, json, sys
texts = json.load(open(sys.argv[1]))
print(json.dumps([list(csv.reader(io.StringIO(text, newline=""), strict=True)) for text in texts]))
`;

test("a spreadsheet reads any names and cells of a CSV file as texts, in their columns", {
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!hasPython("csv"), "Python is not installed");
  // Neither Postgres nor CSV holds NUL, and JSON for Python no lone surrogates.
  const some = texts(400).map((text) => text.replaceAll("\0", "").toWellFormed());
  const files = some.map(
    (text) => csvHeader([text, "b"]) + csvLine([csvCell(text, "text"), csvCell([text, text], "list")]),
  );
  const found = await python<string[][][]>(READ_CSV, files);
  for (const [index, rows] of found.entries()) {
    const text = some[index]!;
    expect(rows.map((row) => row.length)).toEqual([2, 2]);
    for (const cell of [rows[0]![0]!, rows[1]![0]!, rows[1]![1]!])
      expect(cell).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/);
    for (const cell of [rows[0]![0]!, rows[1]![0]!])
      expect(cell.replace(/^'/, "")).toBe(text.replace(/^'/, ""));
  }
});

const READ_MAIL = `
import email, email.policy, json, sys
read = []
for raw in json.load(open(sys.argv[1])):
    mail = email.message_from_string(raw, policy=email.policy.default)
    read.append({"headers": sorted(mail.keys()), "subject": mail["subject"], "to": mail["to"], "text": mail.get_content()})
print(json.dumps(read))
`;

test("a mail about a base of any name has our headers only, and the name on its line", {
  timeout: TIMEOUT_MS,
}, async ({ skip }) => {
  skip(!hasPython("email"), "Python is not installed");
  const transport = createTransport({ streamTransport: true, buffer: true });
  const alerts = texts(200).map(alertAbout);
  const mails = await Promise.all(
    alerts.map(async (alert) => {
      const [subject, text] = [subjectOf([alert]), textOf([alert], CONSOLE)];
      const sent = await transport.sendMail({ from: "us@example.org", to: "ada@example.org", subject, text });
      return { subject, text, raw: sent.message.toString() };
    }),
  );
  const found = await python<{ headers: string[]; subject: string; to: string; text: string }[]>(
    READ_MAIL,
    mails.map(({ raw }) => raw),
  );
  const headers = [
    "Content-Transfer-Encoding",
    "Content-Type",
    "Date",
    "From",
    "MIME-Version",
    "Message-ID",
    "Subject",
    "To",
  ];
  for (const [index, read] of found.entries()) {
    const { subject, text } = mails[index]!;
    expect(read.headers, `seed ${SEED}`).toEqual(headers);
    expect(read.to).toBe("ada@example.org");
    expect(read.subject.replace(/\s+/g, " ").trim()).toBe(subject.replace(/\s+/g, " ").trim());
    expect(read.text.trimEnd()).toBe(text.trimEnd());
    expect(text.split("\n\n")).toHaveLength(4);
  }
});

test("a message for Slack and services that read Markdown has no link and no mention but ours", () => {
  for (const text of texts(400)) {
    const sent = JSON.parse(
      bodyOf("slack", { id: "msg_1", at: new Date(), alerts: [alertAbout(text)] }, CONSOLE, new Date()),
    );
    expect(sent.mrkdwn).toBe(false);
    expect(sent.text, `seed ${SEED}`).not.toMatch(/[<>]|@(?:all|channel|here)/);
    const links: string[] = [];
    walkTokens(Lexer.lex(sent.text), (token: Token) => {
      if (token.type === "link" && token.text !== token.href) links.push(token.raw);
    });
    expect(links, `seed ${SEED}`).toEqual([]);
  }
});

function alertAbout(text: string): Alert {
  const since = new Date().toISOString();
  return {
    ...{ id: "1", kind: "red", at: new Date(), baseId: "bas_1", workspaceId: null },
    facts: { name: `x${text}`, reason: `y${text}`, since, times: 1 },
  };
}
