import { expect, test } from "vitest";
import { advisoriesOfQuick, judgeAudit, pinnedVersions } from "../support/dependency-audit";

const advisory = (severity: string) => ({
  severity,
  title: "Prototype pollution",
  url: "https://github.com/advisories/GHSA-x",
  vulnerable_versions: "<1.2.3",
});

test("a severe vulnerability fails the audit, a mild one is reported", () => {
  const answer = (severity: string) => ({
    code: 1,
    out: JSON.stringify({ lodash: [advisory(severity)] }),
    err: "",
  });
  expect(judgeAudit(answer("critical"))).toMatchObject({ isFailed: true });
  expect(judgeAudit(answer("high"))).toMatchObject({ isFailed: true });
  expect(judgeAudit(answer("moderate"))).toEqual({
    isFailed: false,
    text: "moderate: lodash <1.2.3: Prototype pollution (https://github.com/advisories/GHSA-x)",
  });
  expect(judgeAudit({ code: 0, out: "{}", err: "" })).toEqual({
    isFailed: false,
    text: "Audited: no known vulnerability.",
  });
});

test("a registry without advisories is reported, and does not pass", () => {
  const without = { code: 1, out: "", err: "error: POST https://example.org/advisories/bulk - 405" };
  expect(judgeAudit(without)).toEqual({
    isFailed: false,
    text: "NOT AUDITED: the package registry has no advisories (it answers 405); nothing was checked.",
  });
  expect(judgeAudit({ code: 1, out: "", err: "error: ConnectionRefused" }).text).toContain(
    "cannot be reached",
  );
});

test("every version of a package is checked", () => {
  const lock =
    '{"packages": {"a": ["a@1.0.0", "", {}], "b/a": ["a@2.0.0", ""], "@c/d": ["@c/d@3.0.0", ""],},}';
  expect(pinnedVersions(lock)).toEqual({ a: ["1.0.0", "2.0.0"], "@c/d": ["3.0.0"] });
});

test("the registry's older API is read like the newer one", () => {
  const found = advisoriesOfQuick({ advisories: { "7": { module_name: "lodash", ...advisory("high") } } });
  expect(judgeAudit({ code: 0, out: JSON.stringify(found), err: "" })).toMatchObject({ isFailed: true });
  expect(advisoriesOfQuick({ error: "no such call" })).toBeNull();
});
