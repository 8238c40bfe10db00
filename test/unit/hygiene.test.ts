/** What must never be committed to the repository, and what must exist. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repoFiles, repoRoot } from "../support/source-files";

/** The refused texts; written so that the patterns do not find themselves. */
const REFUSED: { name: string; pattern: RegExp }[] = [
  { name: "a machine's path", pattern: /(?<![\w.$}*~-])\/(?:home|root|Users|work)\/[\w.-]/ },
  {
    name: "a package registry's address",
    pattern: /https?:\/\/[^\s"'/]*(?:registry|artifactory|nexus)[^\s"'/]*\//i,
  },
  { name: "a private key", pattern: /-----BEGIN [A-Z ]*PRIVATE KEY/ },
  { name: "an access token of Airtable", pattern: /\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b/ },
  { name: "a cloud's or a code host's key", pattern: /\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,})\b/ },
];

function refused(text: string): string[] {
  return REFUSED.filter(({ pattern }) => pattern.test(text)).map(({ name }) => name);
}

test("no file contains a machine's path, a registry's address or a secret", () => {
  const found = repoFiles()
    .map((path) => ({ path, text: readFileSync(join(repoRoot, path), "utf8") }))
    .filter(({ text }) => !text.includes("\0"))
    .flatMap(({ path, text }) => refused(text).map((name) => `${path}: ${name}`));
  expect(found).toEqual([]);
});

test("a planted path, registry or secret is found", () => {
  const planted = [
    `cd ${"/home"}/someone`,
    `registry=https://${"registry"}.example.com/npm/`,
    `-----BEGIN RSA ${"PRIVATE"} KEY-----`,
    `pat${"A".repeat(14)}.${"0".repeat(64)}`,
    `AKIA${"A".repeat(16)}`,
  ];
  for (const text of planted) expect(refused(text), text).toHaveLength(1);
});

test("every dependency is pinned to one version, in package.json and in the lock file", () => {
  const { dependencies, devDependencies, engines } = packageJson();
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...engines })) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  }
  const locked = readFileSync(join(repoRoot, "bun.lock"), "utf8");
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    expect(locked, name).toContain(`"${name}@${version}"`);
  }
});

test("the license exists, and package.json names it", () => {
  expect(readFileSync(join(repoRoot, "LICENSE"), "utf8")).toContain("Apache License");
  expect(packageJson().license).toBe("Apache-2.0");
});

function packageJson(): Record<"dependencies" | "devDependencies" | "engines", Record<string, string>> & {
  license: string;
} {
  return JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
}
