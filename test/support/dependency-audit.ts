/**
 * Asks the registry for known vulnerabilities of the packages in the lock file: by `bun audit`, then by calling the
 * registry's two APIs directly, because some mirrors have only the older one or accept no compressed request. If the
 * registry has no answer, the audit says so and does not fail: not every mirror stores advisories.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repoRoot } from "./source-files";

/** The longest wait for the registry's answer, ms. */
const TIMEOUT_MS = 30_000;
/** In the npm registry's API: all advisories of many packages, and the older call, which npm falls back to. */
const BULK = "/-/npm/v1/security/advisories/bulk";
const QUICK = "/-/npm/v1/security/audits/quick";

/** These severities fail the audit; milder ones are printed. */
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

/** Returns the text and the result for an answer of `bun audit --json`. */
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

/** Returns null for anything that is not such an answer. */
function parsed(out: string): Record<string, Advisory[]> | null {
  try {
    const found: unknown = JSON.parse(out);
    return found !== null && typeof found === "object" ? (found as Record<string, Advisory[]>) : null;
  } catch {
    return null;
  }
}

/** Versions, by name, of all packages in the lock file. */
export function pinnedVersions(lockText: string): Record<string, string[]> {
  const { packages } = Bun.JSONC.parse(lockText) as { packages: Record<string, [string]> };
  const versions = new Map<string, Set<string>>();
  for (const [id] of Object.values(packages)) {
    const at = id.lastIndexOf("@");
    const known = versions.get(id.slice(0, at)) ?? new Set();
    versions.set(id.slice(0, at), known.add(id.slice(at + 1)));
  }
  return Object.fromEntries([...versions].map(([name, all]) => [name, [...all].sort()]));
}

/** Converts the older call's answer to the newer one's form. Returns null for anything that is not such an answer. */
export function advisoriesOfQuick(answer: unknown): Record<string, Advisory[]> | null {
  const { advisories } = (answer ?? {}) as {
    advisories?: Record<string, Advisory & { module_name: string }>;
  };
  if (typeof advisories !== "object" || advisories === null) return null;
  const byName: Record<string, Advisory[]> = {};
  for (const { module_name, ...advisory } of Object.values(advisories))
    byName[module_name] = [...(byName[module_name] ?? []), advisory];
  return byName;
}

/** Asks the registry directly. @returns its advisories, or its other answer as text */
async function ask(
  registry: string,
  call: string,
  body: unknown,
  read: (answer: unknown) => Record<string, Advisory[]> | null,
): Promise<Record<string, Advisory[]> | string> {
  try {
    const answer = await fetch(registry + call, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!answer.ok) return `${call} answers ${answer.status}`;
    return read(await answer.json()) ?? `${call} answers something else`;
  } catch (error) {
    return `${call}: ${error instanceof Error ? error.message : error}`;
  }
}

async function audit(): Promise<Verdict> {
  const child = Bun.spawnSync([process.execPath, "audit", "--json"], { stdout: "pipe", stderr: "pipe" });
  const [out, err] = [child.stdout.toString(), child.stderr.toString()];
  const verdict = judgeAudit({ code: child.exitCode, out, err });
  const [, registry] = /POST (https?:\S+?)\/-\/npm\//.exec(err) ?? [];
  if (!verdict.text.startsWith("NOT AUDITED") || registry === undefined) return verdict;
  const pinned = pinnedVersions(readFileSync(join(repoRoot, "bun.lock"), "utf8"));
  const tree = Object.entries(pinned).map(([name, [version]]) => [name, { version }]);
  const quick = { name: "basetide", version: "0.0.0", requires: {}, dependencies: Object.fromEntries(tree) };
  const answers = [
    await ask(registry, BULK, pinned, (answer) => answer as Record<string, Advisory[]>),
    await ask(registry, QUICK, quick, advisoriesOfQuick),
  ];
  const found = answers.find((answer) => typeof answer !== "string");
  if (found) return judgeAudit({ code: 0, out: JSON.stringify(found), err: "" });
  const count = Object.keys(pinned).length;
  return { isFailed: false, text: `${verdict.text} Asked for ${count} packages: ${answers.join("; ")}.` };
}

if (import.meta.main) {
  const { isFailed, text } = await audit();
  console.log(text);
  if (isFailed) process.exitCode = 1;
}
