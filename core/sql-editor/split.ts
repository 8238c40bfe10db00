/**
 * Splits SQL text into statements, as psql does: at semicolons outside of quotes and comments.
 *
 * A wrong split is harmless: each part is sent in the extended protocol, where Postgres itself accepts one statement
 * only.
 */

export interface SqlStatement {
  text: string;
  /** Offset in the whole text, in UTF-16 units. */
  start: number;
}

/** One token after which the position is certainly outside of any quotes and comments. Unterminated ones run to the end. */
const TOKEN = new RegExp(
  [
    String.raw`--[^\n\r]*`,
    String.raw`(?<comment>/\*)`,
    String.raw`[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)`,
    "'(?:[^']|'')*(?:'|$)",
    '"(?:[^"]|"")*(?:"|$)',
    String.raw`(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)`,
    // A `$` or `e'` within a name begins nothing.
    String.raw`[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*`,
    String.raw`\d[\w.]*`,
    "(?<end>;)",
    String.raw`[\s\S]`,
  ].join("|"),
  "y",
);

/** Returns the names in `sql` outside of texts and comments: quoted ones as they are, others in lower case. */
export function identifiersOf(sql: string): Set<string> {
  const found = new Set<string>();
  for (let at = 0; at < sql.length; ) {
    TOKEN.lastIndex = at;
    const [token, ...groups] = TOKEN.exec(sql)!;
    const [comment, dollar] = groups;
    if (token.startsWith('"')) found.add(token.replace(/^"|"$/g, "").replaceAll('""', '"'));
    else if (/^[A-Za-z_\u0080-\uffff]/.test(token) && !/^e'/i.test(token)) found.add(token.toLowerCase());
    const next = at + token.length;
    at = comment ? commentEnd(sql, at) : dollar ? dollarEnd(sql, next, dollar) : next;
  }
  return found;
}

/** Returns the statements of `sql`, without surrounding spaces; empty ones, and those of comments alone, are left out. */
export function splitStatements(sql: string): SqlStatement[] {
  const statements: SqlStatement[] = [];
  let start = 0;
  let hasContent = false;
  const close = (end: number) => {
    const part = sql.slice(start, end);
    const text = part.trim();
    if (hasContent) statements.push({ text, start: start + part.indexOf(text) });
    hasContent = false;
  };
  for (let at = 0; at < sql.length; ) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(sql)!;
    const { comment, dollar, end } = match.groups!;
    let next = at + match[0].length;
    if (comment) next = commentEnd(sql, at);
    else if (dollar) next = dollarEnd(sql, next, dollar);
    if (end) {
      close(at);
      start = next;
    } else if (!comment && !match[0].startsWith("--") && match[0].trim() !== "") hasContent = true;
    at = next;
  }
  close(sql.length);
  return statements;
}

/** The first word of a statement, in lower case, after comments and parentheses. */
export function firstWord(statement: string): string {
  for (let at = 0; at < statement.length; ) {
    const rest = statement.slice(at);
    if (rest.startsWith("/*")) at = commentEnd(statement, at);
    else {
      const skipped = /^(?:--[^\n\r]*|[\s(]+)/.exec(rest)?.[0].length ?? 0;
      if (skipped === 0) return /^\w*/.exec(rest)![0].toLowerCase();
      at += skipped;
    }
  }
  return "";
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
