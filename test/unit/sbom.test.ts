import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { expect, test } from "vitest";
import { writeSbom } from "../support/sbom";
import { repoRoot } from "../support/source-files";

const lock = readFileSync(join(repoRoot, "bun.lock"), "utf8");
const project = { name: "basetide", version: "0.1.0", license: "Apache-2.0" };
const base = {
  debian: { libfoo: { version: "1.2-3+deb12u1", sha256: "ab".repeat(32) } },
  lockText: readFileSync(join(repoRoot, "deploy/image/bun.lock"), "utf8"),
};

interface Sbom {
  components: {
    name: string;
    group?: string;
    version: string;
    purl: string;
    scope: string;
    hashes?: unknown[];
  }[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

test("the bill of materials is valid CycloneDX 1.6, and the same for the same lock file", async () => {
  const text = writeSbom(lock, project, base);
  expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)).toBeNull();
  expect(writeSbom(lock, project, base)).toBe(text);
});

test("it has every package of the lock file, with its hash, and says which of them run in production", () => {
  const { components, dependencies } = JSON.parse(writeSbom(lock, project, base)) as Sbom;
  const { packages } = Bun.JSONC.parse(lock) as { packages: Record<string, [string]> };
  const pinned = new Set(Object.values(packages).map(([id]) => id));
  const named = components.map(({ group, name, version }) => `${group ? `${group}/` : ""}${name}@${version}`);
  const { engines } = JSON.parse(readFileSync(join(repoRoot, "package.json"), "utf8"));
  const ofImage = ["libfoo@1.2-3+deb12u1", `@oven/bun-linux-x64-baseline@${engines.bun}`];
  expect(named.sort()).toEqual([...pinned, ...ofImage].sort());
  expect(components.filter(({ hashes }) => !hashes?.length)).toEqual([]);
  const scopeOf = (name: string) => components.find((one) => one.name === name)?.scope;
  expect(scopeOf("postgres")).toBe("required");
  // Only through pg-boss.
  expect(scopeOf("pg-types")).toBe("required");
  expect(scopeOf("vitest")).toBe("excluded");
  const refs = new Set(dependencies.map(({ ref }) => ref));
  expect(dependencies.flatMap(({ dependsOn = [] }) => dependsOn).filter((ref) => !refs.has(ref))).toEqual([]);
});
