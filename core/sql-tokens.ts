/** Splits SQL text into tokens, as psql and Postgres do. The console's pages use it, too, so it imports nothing. */

export interface SqlToken {
  kind: "word" | "quoted" | "text" | "comment" | "number" | "space" | "symbol";
  text: string;
  /** Offset in the whole text, in UTF-16 units. */
  start: number;
}

/** One token. Unterminated quotes and comments run to the end. */
const TOKEN = new RegExp(
  [
    String.raw`(?<space>\s+)`,
    String.raw`(?<line>--[^\n\r]*)`,
    String.raw`(?<comment>/\*)`,
    String.raw`(?<text>[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|'(?:[^']|'')*(?:'|$))`,
    '(?<quoted>"(?:[^"]|"")*(?:"|$))',
    String.raw`(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)`,
    // A `$` or `e'` within a name begins nothing.
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    String.raw`(?<number>\d[\w.]*)`,
    String.raw`[\s\S]`,
  ].join("|"),
  "y",
);

/** Yields the tokens of `sql`, in their order and without gaps. */
export function* sqlTokens(sql: string): Generator<SqlToken> {
  for (let start = 0; start < sql.length; ) {
    TOKEN.lastIndex = start;
    const match = TOKEN.exec(sql)!;
    const { space, line, comment, text, quoted, dollar, word, number } = match.groups!;
    let end = start + match[0].length;
    if (comment) end = commentEnd(sql, start);
    else if (dollar) end = dollarEnd(sql, end, dollar);
    let kind: SqlToken["kind"] = "symbol";
    if (space) kind = "space";
    else if (word) kind = "word";
    else if (quoted) kind = "quoted";
    else if (number) kind = "number";
    else if (line !== undefined || comment) kind = "comment";
    else if (text || dollar) kind = "text";
    yield { kind, text: sql.slice(start, end), start };
    start = end;
  }
}

/** Returns the name that a word or a quoted name stands for. */
export function nameOfToken({ kind, text }: SqlToken): string {
  return kind === "quoted" ? text.replace(/^"|"$/g, "").replaceAll('""', '"') : text.toLowerCase();
}

/** Comments nest. */
function commentEnd(sql: string, at: number): number {
  let depth = 0;
  const marks = /\/\*|\*\//g;
  marks.lastIndex = at;
  for (let mark = marks.exec(sql); mark; mark = marks.exec(sql)) {
    depth += mark[0] === "/*" ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  return sql.length;
}

function dollarEnd(sql: string, from: number, tag: string): number {
  const end = sql.indexOf(tag, from);
  return end === -1 ? sql.length : end + tag.length;
}
