/**
 * What the SQL editor offers at the cursor. Columns of the tables that the query names come first, wherever it names
 * them; then all other columns, then keywords and functions. After `from` and the like, tables come first.
 */
import { nameOfToken, type SqlToken, sqlTokens } from "../../../core/sql-tokens";

/** What can be named, as the server of the page answers. */
export interface Names {
  schema: string;
  relations: Relation[];
}

interface Relation extends Name {
  columns: Name[];
}

interface Name {
  name: string;
  /** How SQL writes the name, if it needs quotes. */
  written?: string | undefined;
  /** Of a column of a table. */
  type?: string | undefined;
}

export interface Option {
  label: string;
  /** The text to insert. */
  apply: string;
  kind: "column" | "table" | "keyword" | "function";
  /** The tables of a column. */
  detail?: string | undefined;
}

interface Completion {
  /** What an option replaces. */
  from: number;
  to: number;
  options: Option[];
  /** The beginning of a name that has been typed, without quotes. */
  typed: string;
}

const KEYWORDS = keywords([
  ...["select", "distinct", "from", "where", "and", "or", "not", "in", "exists", "between", "like", "ilike"],
  ...["is null", "is not null", "null", "true", "false", "any", "join", "left join", "cross join", "lateral"],
  ...["on", "using", "as", "group by", "having", "order by", "asc", "desc", "nulls last", "limit", "offset"],
  ...["union all", "with", "case", "when", "then", "else", "end", "filter", "over", "partition by"],
  ...["interval", "current_date", "explain"],
]);
const FUNCTIONS: Option[] = [
  ...["count", "sum", "avg", "min", "max", "round", "coalesce", "nullif", "lower", "upper", "trim", "length"],
  ...[
    "replace",
    "split_part",
    "string_agg",
    "array_agg",
    "unnest",
    "cardinality",
    "now",
    "age",
    "date_trunc",
  ],
  ...["extract", "to_char", "greatest", "least", "row_number", "generate_series"],
].map((label) => ({ label, apply: label, kind: "function" }));
const TYPES = keywords(["text", "numeric", "integer", "boolean", "date", "timestamptz", "interval", "jsonb"]);

const BEFORE_TABLE = new Set(["from", "join", "update", "into"]);
/** May come between these and the table. */
const WITH_TABLE = new Set(["only", "lateral"]);
/** A comma after these no longer separates tables. */
const AFTER_TABLES = new Set(
  "select where set values group having order limit offset fetch window returning union intersect except".split(
    " ",
  ),
);
/** These follow a table and are not its alias. */
const NO_ALIAS = new Set([
  ...AFTER_TABLES,
  ...BEFORE_TABLE,
  ..."on using inner left right full cross natural for tablesample default".split(" "),
]);
/** First words of what may be in parentheses and names tables. */
const QUERIES = new Set(["select", "with", "insert", "update", "delete"]);

/** A table or a query in parentheses, as the statement names it. */
interface Reference {
  name: string;
  /** As it qualifies columns. */
  written: string;
  columns: Name[];
}

/** The statement, or a part of it in parentheses. */
interface Scope {
  /** The scope whose tables can be used here, too. */
  outer: Scope | undefined;
  parent: Scope | undefined;
  /** The word before the parenthesis, in lower case. */
  opener: string | undefined;
  /** It stands for a table. */
  isTable: boolean;
  /** The name of the query, in `with name as (…)`. */
  named: string | undefined;
  /** It contains a query, not the arguments of a function. */
  isQuery: boolean;
  /** What comes next. */
  expects: "table" | "more tables" | "other";
  references: Reference[];
  /** Names that it gives to columns. */
  aliases: Name[];
}

/** Where a token leaves the reader. */
interface Place {
  scope: Scope;
  /** `after table`: an alias may follow. */
  expects: "table" | "after table" | "other";
}

/**
 * Returns what can be written at an offset of the text: what begins as the word at the cursor does, then what has a
 * part between underscores that does.
 *
 * @param isAsked whether the list also opens where nothing has been typed
 * @returns undefined if there is nothing to offer: in texts, comments and numbers, and where a new name is given
 */
export function completeSql(sql: string, at: number, names: Names, isAsked: boolean): Completion | undefined {
  const tokens = statementAt(sql, at);
  const current = tokens.find(({ start, text }) => start < at && at <= start + text.length);
  if (current && !isCompletable(current, at)) return undefined;
  const isQuoted = current?.kind === "quoted";
  const word = current && isName(current) ? current : undefined;
  const typed = word ? nameOfToken({ ...word, text: sql.slice(word.start, at) }) : "";

  const others = tokens.filter(
    (token) => token !== word && token.kind !== "space" && token.kind !== "comment",
  );
  const before = others.filter(({ start }) => start < at);
  const isQualified = before.at(-1)?.text === ".";
  if (!word && !isQualified && !isAsked) return undefined;

  const statement = readStatement(others, names);
  const groups = isQualified ? qualified(before, statement, names) : plain(before, statement, names);
  const isFit = ({ kind }: Option) => !isQuoted || kind === "column" || kind === "table";
  const from = word?.start ?? at;
  const found = ranked(groups, typed)
    .filter(isFit)
    .map((option) => adapted(option, sql.slice(from, at), isQuoted));
  // A quoted name may have been closed here only.
  const to = isQuoted && sql.startsWith(word!.text, from) ? from + word!.text.length : at;
  const isDone = found.length === 1 && found[0]!.apply === sql.slice(from, to);
  return found.length === 0 || isDone ? undefined : { from, to, options: found, typed };
}

function isName({ kind }: SqlToken): boolean {
  return kind === "word" || kind === "quoted";
}

/** Whether a name can be completed at the offset, which is in this token or at its end. */
function isCompletable({ kind, text, start }: SqlToken, at: number): boolean {
  const isAtEnd = at === start + text.length;
  if (kind === "quoted") return !isAtEnd;
  if (kind === "comment") return isAtEnd && text.startsWith("/*") && text.endsWith("*/");
  return kind !== "number" && (kind !== "text" || (isAtEnd && /['$]$/.test(text) && text.length > 1));
}

/** The tokens of the statement that contains the offset. A quoted name that does not end there is closed after it. */
function statementAt(sql: string, at: number): SqlToken[] {
  let statement: SqlToken[] = [];
  for (const token of sqlTokens(sql)) {
    const { kind, text, start } = token;
    if (kind === "quoted" && start < at && !/^"(?:[^"]|"")*"$/.test(text)) {
      return statementAt(`${sql.slice(0, at)}"${sql.slice(at)}`, at);
    }
    if (text !== ";") statement.push(token);
    else if (start >= at) break;
    else statement = [];
  }
  return statement;
}

interface Statement {
  root: Scope;
  places: Map<SqlToken, Place>;
  /** Queries that `with` names. */
  queries: Map<string, Reference>;
}

/** Finds the tables that a statement names, by scope. @param tokens without spaces and comments */
function readStatement(tokens: SqlToken[], names: Names): Statement {
  const root = scopeOf({ isQuery: true });
  const statement: Statement = { root, places: new Map(), queries: new Map() };
  const { places, queries } = statement;
  let scope = root;
  let at = 0;
  const textAt = (index: number) => tokens[index]?.text.toLowerCase();

  /** Reads `as name` or `name` after the token at `at`, if it is there. */
  const readAlias = (): SqlToken | undefined => {
    const isNamed = textAt(at + 1) === "as";
    const alias = tokens[at + (isNamed ? 2 : 1)];
    if (!alias || !isName(alias) || (alias.kind === "word" && NO_ALIAS.has(nameOfToken(alias))))
      return undefined;
    at += isNamed ? 2 : 1;
    return alias;
  };
  const open = () => {
    const opener = textAt(at - 1);
    const isTable = scope.expects === "table";
    const named = isTable ? undefined : queryName(tokens, at);
    const isQuery = isTable || QUERIES.has(textAt(at + 1) ?? "");
    const isApart = (isTable && opener !== "lateral") || named !== undefined;
    const outer = isApart ? undefined : scope;
    const expects = isTable ? "table" : "other";
    scope = scopeOf({ outer, parent: scope, opener, isTable, named, isQuery, expects });
  };
  /** @returns whether it stands for a table */
  const close = (): boolean => {
    const { parent, isTable, named, references, aliases } = scope;
    if (!parent) return false;
    scope = parent;
    const columns = distinct([...aliases, ...references.flatMap((one) => one.columns)]);
    if (named !== undefined) queries.set(named, { name: named, written: named, columns });
    if (!isTable) return false;
    const alias = readAlias();
    const own = alias && [{ name: nameOfToken(alias), written: alias.text, columns }];
    scope.references.push(...(own ?? references));
    scope.expects = "more tables";
    return true;
  };
  const readTable = () => {
    const path = [nameOfToken(tokens[at]!)];
    for (; textAt(at + 1) === "." && tokens[at + 2] && isName(tokens[at + 2]!); at += 2) {
      path.push(nameOfToken(tokens[at + 2]!));
    }
    const { text: written } = tokens[at]!;
    const table = tableOf(path, queries, names);
    const alias = textAt(at + 1) === "(" ? undefined : readAlias();
    if (table) {
      const { columns } = table;
      scope.references.push({
        name: alias ? nameOfToken(alias) : table.name,
        written: alias?.text ?? written,
        columns,
      });
    }
    scope.expects = "more tables";
  };

  for (; at < tokens.length; at++) {
    const token = tokens[at]!;
    const first = at;
    const word = token.kind === "quoted" ? "" : token.text.toLowerCase();
    let isAfterTable = false;
    if (word === "(") open();
    else if (word === ")") isAfterTable = close();
    else if (word === "," && scope.expects === "more tables") scope.expects = "table";
    else if (startsTables(tokens, at, scope)) scope.expects = "table";
    else if (AFTER_TABLES.has(word) || QUERIES.has(word)) scope.expects = "other";
    else if (scope.expects === "table" && isName(token) && !WITH_TABLE.has(word)) {
      readTable();
      isAfterTable = true;
    } else if (word === "as" && tokens[at + 1] && isName(tokens[at + 1]!) && textAt(at + 2) !== "(") {
      at++;
      scope.aliases.push({ name: nameOfToken(tokens[at]!), written: tokens[at]!.text });
    }
    const expects = isAfterTable ? "after table" : scope.expects === "table" ? "table" : "other";
    for (const passed of tokens.slice(first, at + 1)) places.set(passed, { scope, expects });
  }
  return statement;
}

function scopeOf(scope: Partial<Scope>): Scope {
  return {
    ...{
      outer: undefined,
      parent: undefined,
      opener: undefined,
      isTable: false,
      named: undefined,
      isQuery: false,
    },
    ...{ expects: "other", references: [], aliases: [] },
    ...scope,
  };
}

/** Whether a table follows the token, and not what `extract(… from` or `is distinct from` compares. */
function startsTables(tokens: SqlToken[], at: number, { isQuery }: Scope): boolean {
  const [word, before, first] = [0, 1, 2].map((back) => tokens[at - back]?.text.toLowerCase());
  if (!BEFORE_TABLE.has(word!)) return false;
  return word !== "from" || (isQuery && !(before === "distinct" && (first === "is" || first === "not")));
}

/** The name before a parenthesis in `with name as (`. */
function queryName(tokens: SqlToken[], parenthesis: number): string | undefined {
  let at = parenthesis - 1;
  while (["materialized", "not"].includes(tokens[at]?.text.toLowerCase() ?? "")) at--;
  const name = tokens[at - 1];
  return tokens[at]?.text.toLowerCase() === "as" && name && isName(name) ? nameOfToken(name) : undefined;
}

function tableOf(path: string[], queries: Statement["queries"], { schema, relations }: Names) {
  const name = path.at(-1)!;
  if (path.length > 1 && path.at(-2) !== schema) return undefined;
  return (path.length === 1 && queries.get(name)) || relations.find((one) => one.name === name);
}

/** What can follow `table.`, `alias.` or `schema.`; if that is unknown, every column. */
function qualified(before: SqlToken[], { root, places, queries }: Statement, names: Names): Option[][] {
  const path: string[] = [];
  let at = before.length - 1;
  for (; at > 0 && before[at]!.text === "." && isName(before[at - 1]!); at -= 2) {
    path.unshift(nameOfToken(before[at - 1]!));
  }
  const name = path.at(-1);
  const { scope, expects } = places.get(before[at]!) ?? { scope: root, expects: "other" };
  if (name === undefined) return [];
  if (path.length === 1 && name === names.schema) return [names.relations.map(tableOption)];
  if (expects === "table") return [];
  const reference = path.length === 1 && visible(scope).find((one) => one.name === name);
  const table = reference || tableOf(path, queries, names);
  return [table ? table.columns.map((column) => columnOption(column, [table.name])) : allColumns(names)];
}

function plain(before: SqlToken[], { root, places, queries }: Statement, names: Names): Option[][] {
  const previous = before.at(-1);
  const words = [...KEYWORDS, ...FUNCTIONS];
  if (!previous) return [words];
  const { scope, expects } = places.get(previous) ?? { scope: root, expects: "other" };
  const word = previous.kind === "word" ? nameOfToken(previous) : previous.text;
  const tables = [...queries.values(), ...names.relations].map(tableOption);
  if (word === ":" && before.at(-2)?.text === ":") return [TYPES];
  if (word === "as") return scope.opener === "cast" ? [TYPES] : [];
  if (expects === "table") return [tables, words];
  if (expects === "after table") return [KEYWORDS];
  const references = visible(scope);
  const own = columnsOf(references, scope.opener === "using");
  return [own, references.map(tableOption), allColumns(names), words, tables];
}

/** The references whose columns can be used in a scope, the nearest first. */
function visible(scope: Scope | undefined): Reference[] {
  return scope ? [...scope.references, ...visible(scope.outer)] : [];
}

/** Columns of several tables: qualified if the name alone would mean another one, or is ambiguous. */
function columnsOf(references: Reference[], isBare: boolean): Option[] {
  const counts = Map.groupBy(
    references.flatMap(({ columns }) => columns),
    ({ name }) => name,
  );
  return references.flatMap(({ name: table, written, columns }) =>
    columns.map((column) => {
      const option = columnOption(column, [table]);
      const isQualified = !isBare && counts.get(column.name)!.length > 1;
      return isQualified ? { ...option, apply: `${written}.${option.apply}` } : option;
    }),
  );
}

/** Every column of every table, once by name. */
function allColumns({ relations }: Names): Option[] {
  const all = relations.flatMap((relation) =>
    relation.columns.map((column) => ({ column, table: relation.name })),
  );
  return [...Map.groupBy(all, ({ column }) => column.name).values()].map((same) =>
    columnOption(
      same[0]!.column,
      same.map(({ table }) => table),
    ),
  );
}

function distinct(columns: Name[]): Name[] {
  return [...new Map(columns.toReversed().map((column) => [column.name, column])).values()].toReversed();
}

function columnOption({ name, written = name }: Name, tables: string[]): Option {
  const detail = tables.length > 2 ? `${tables[0]} and ${tables.length - 1} more` : tables.join(", ");
  return { label: name, apply: written, kind: "column", detail };
}

function tableOption({ name, written = name }: Name): Option {
  return { label: name, apply: written, kind: "table" };
}

function keywords(labels: string[]): Option[] {
  return labels.map((label) => ({ label, apply: label, kind: "keyword" }));
}

/**
 * The options that match, in the order of their groups: the very same first, then those that begin so, then those with
 * such a part. An option of a group is not repeated in later ones.
 */
function ranked(groups: Option[][], typed: string): Option[] {
  const wanted = folded(typed);
  const matches: Option[][] = [[], [], []];
  const seen = new Set<string>();
  for (const group of groups) {
    for (const option of group) {
      const label = folded(option.label);
      const rank = [label === wanted, label.startsWith(wanted), label.includes(`_${wanted}`)].indexOf(true);
      if (rank >= 0 && !seen.has(`${option.kind} ${option.label}`)) matches[rank]!.push(option);
    }
    for (const { kind, label } of group) seen.add(`${kind} ${label}`);
  }
  return matches.flat();
}

/** Without case and accents. */
function folded(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/** As it is inserted: names in the quotes that are there, keywords in the case that is typed. */
function adapted(option: Option, typed: string, isQuoted: boolean): Option {
  const { label, apply, kind } = option;
  if (isQuoted) return { ...option, apply: `"${label.replaceAll('"', '""')}"` };
  if (kind !== "keyword" || !/^[A-Z]+$/.test(typed)) return option;
  return { ...option, label: label.toUpperCase(), apply: apply.toUpperCase() };
}
