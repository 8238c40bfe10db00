/**
 * Asks the registry for known vulnerabilities of what the lock file pins (`bun audit`). A registry that has no answer
 * to that is said to have none, and fails nothing: not every mirror keeps advisories.
 */

/** These fail; milder ones are told. */
const GRAVE = new Set(["high", "critical"]);

export interface Verdict {
  isFailed: boolean;
  text: string;
}

interface Advisory {
  severity: string;
  title: string;
  url: string;
  vulnerable_versions: string;
}

/** What to say to an answer of `bun audit --json`. */
export function judgeAudit(answer: { code: number; out: string; err: string }): Verdict {
  const found = parsed(answer.out);
  if (found === null) {
    const status = / - (\d{3})\b/.exec(answer.err)?.[1];
    const why = status === undefined ? "cannot be reached" : `has no advisories (it answers ${status})`;
    return { isFailed: false, text: `NOT AUDITED: the package registry ${why}; nothing was checked.` };
  }
  const all = Object.entries(found).flatMap(([name, list]) => list.map((one) => ({ name, ...one })));
  if (all.length === 0) return { isFailed: false, text: "Audited: no known vulnerability." };
  const lines = all.map(
    (one) => `${one.severity}: ${one.name} ${one.vulnerable_versions}: ${one.title} (${one.url})`,
  );
  return { isFailed: all.some(({ severity }) => GRAVE.has(severity)), text: lines.sort().join("\n") };
}

/** Null for what is no such answer. */
function parsed(out: string): Record<string, Advisory[]> | null {
  try {
    const found: unknown = JSON.parse(out);
    return found !== null && typeof found === "object" ? (found as Record<string, Advisory[]>) : null;
  } catch {
    return null;
  }
}

if (import.meta.main) {
  const child = Bun.spawnSync([process.execPath, "audit", "--json"], { stdout: "pipe", stderr: "pipe" });
  const { isFailed, text } = judgeAudit({
    code: child.exitCode,
    out: child.stdout.toString(),
    err: child.stderr.toString(),
  });
  console.log(text);
  if (isFailed) process.exitCode = 1;
}
