/** Recognizes passwords that attackers try first. */
import { readFileSync } from "node:fs";
import { appPath } from "../../app-path";

export const COMMON_PASSWORD =
  "This password is one of the most common ones, which attackers try first. Several unrelated words make a strong one.";

let known: ReadonlySet<string> | undefined;

/**
 * Is the password a common one, whatever its case, also with digits and signs behind it?
 *
 * @param email its owner's, whose name is as easy to guess
 */
export function isCommonPassword(password: string, email = ""): boolean {
  known ??= new Set(readList());
  const plain = password.toLowerCase();
  const word = plain.replace(/[^a-z]+$/, "");
  const address = email.toLowerCase();
  const own = [address, address.split("@")[0]!, "basetide"].filter((text) => text !== "");
  return [plain, word].some((text) => known!.has(text) || own.includes(text)) || new Set(plain).size < 3;
}

function readList(): string[] {
  const text = readFileSync(appPath("core/control/accounts/common-passwords.txt"), "utf8");
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("# ") && line !== "#");
}
