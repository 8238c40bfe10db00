/** Annotations in GitHub's CI: lines of the output that GitHub shows at the lines of a file. */
import type { Problem } from "./parse";

export function annotate(file: string, found: Problem[]): void {
  if (!process.env.GITHUB_ACTIONS) return;
  const escaped = (text: string) =>
    text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  const property = (text: string) => escaped(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
  for (const { line, message } of found) {
    // On standard error, because standard output may be JSON; GitHub reads both.
    console.error(`::error file=${property(file)},line=${line}::${escaped(message)}`);
  }
}
