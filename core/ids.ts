/** Ids of the control plane's rows: `bas_` and 20 random letters and digits (100 bits), safe in URLs and SQL. */
import { randomBytes } from "node:crypto";
import { notFound } from "./errors";

/** Crockford's base 32, lower case: without the ambiguous i, l, o and u. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH = 20;

/** The prefixes of ids, by kind. */
export const idPrefixes = {
  account: "acc",
  api_token: "tok",
  cluster: "clu",
  database: "dat",
  base: "bas",
  request: "req",
  user: "usr",
  user_login: "usl",
  two_factor: "tfa",
  session: "ses",
  verification: "ver",
  invitation: "inv",
  draft: "dra",
  workspace: "wsp",
  alert_webhook: "whk",
  alert_message: "msg",
  saved_query: "qry",
  past_query: "pqr",
  sql_user: "squ",
  change_set: "chs",
  change_item: "chi",
  agent: "agt",
  agent_rule: "agr",
  connection: "cnn",
  oauth: "oau",
} as const;

export type IdKind = keyof typeof idPrefixes;

export function newId(kind: IdKind): string {
  // 256 is a multiple of 32: every letter is equally likely.
  const letters = Array.from(randomBytes(LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]);
  return `${idPrefixes[kind]}_${letters.join("")}`;
}

/** Could `text` be an id of this kind? Other text is not looked up: it may contain characters that Postgres rejects. */
export function isId(kind: IdKind, text: string): boolean {
  return text.startsWith(`${idPrefixes[kind]}_`) && new RegExp(`^.{4}[${ALPHABET}]{${LENGTH}}$`).test(text);
}

/** Returns the row with this id, if `select` finds it. @throws BasetideError `not_found` with the message */
export async function rowById<Row>(
  kind: IdKind,
  id: string,
  select: () => PromiseLike<Row[]>,
  message: string,
): Promise<Row> {
  const [row] = isId(kind, id) ? await select() : [];
  if (row) return row;
  throw notFound(message);
}
