/** Names a key to people who know it, and does not reveal it to others. */
import { cutText } from "../cut-text";

const SHOWN = 7;
/** A shorter key would lose too much of its secret. */
const LEAST = 3 * SHOWN;
const UNKNOWN = "another form";

/** Returns the beginning of the key in an `Authorization` header, such as `patAbCd…`. */
export function firstLetters(authorization: string): string {
  const key = authorization.slice(authorization.lastIndexOf(" ") + 1);
  if (key.length < LEAST || !/^[\w.-]{7}/.test(key)) return UNKNOWN;
  return `${cutText(key, SHOWN)}…`;
}
