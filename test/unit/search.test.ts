/** What the console's search finds among given names, and in which order. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { actionItems, pageItems, settingItems } from "../../apps/console/search/places";
import { ranked, scoreOf } from "../../apps/console/search/rank";
import { normalized, searchTerms } from "../../core/control/bases";

const order = (texts: string[], query: string) =>
  ranked(
    texts.map((text) => ({ text })),
    searchTerms(query),
  ).map(({ text }) => text);

test("the closer a name is to the query, the earlier", () => {
  const names = ["Reorders", "Open orders", "Orders", "Orders archive", "Order", "Invoices"];
  expect(order(names, "orders")).toEqual(["Orders", "Orders archive", "Open orders", "Reorders"]);
  expect(order(names, "ord")).toEqual(["Orders", "Order", "Orders archive", "Open orders", "Reorders"]);
});

test("a column is found by its SQL name, and together with its table or base", () => {
  const column = { text: "Due date", context: "Tasks Acme CRM" };
  for (const query of ["due_date", "DUE-DATE", "due", "tasks due", "acme date", "te"]) {
    expect(scoreOf(column, searchTerms(query)), query).toBeGreaterThan(0);
  }
  for (const query of ["tasks", "due price", "acme"]) {
    expect(scoreOf(column, searchTerms(query)), query).toBe(0);
  }
});

test("a part of a word finds names of the account, not our own", () => {
  const item = { text: "Change password", aliases: "sign-in" };
  const score = (query: string, byWord: boolean) => scoreOf(item, searchTerms(query), { byWord });
  expect([score("ord", false) > 0, score("ord", true), score("pass", true) > 0]).toEqual([true, 0, true]);
  expect(score("sign", true)).toBeGreaterThan(0);
});

test("properties: a name finds itself first, case and punctuation do not matter, and more words never find more", () => {
  const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 20 }), name, (names, other) => {
      const one = names[0]!;
      const terms = searchTerms(one);
      fc.pre(terms.length > 0 && terms.join(" ") === normalized(one));
      const [first] = ranked(
        names.map((text) => ({ text })),
        terms,
      );
      expect(normalized(first!.text)).toBe(normalized(one));
      const [narrow, wide] = [[...terms, ...searchTerms(other)], terms].map(
        (of) => new Set(order(names, of.join(" "))),
      );
      expect(narrow!.isSubsetOf(wide!)).toBe(true);
      expect(order(names, one.replaceAll(" ", "_"))).toEqual(order(names, one));
    }),
  );
});

test("other words find a page, an action or a setting, which are those of the base", () => {
  const base = { id: "bas_1", name: "Acme CRM" };
  const first = (query: string, context: typeof base | undefined) =>
    ranked(
      [...actionItems(context, "owner"), ...pageItems(context, false), ...settingItems(context)],
      searchTerms(query),
    )[0]?.href;
  expect(first("resync", base)).toBe("/bases/bas_1/sync");
  expect(first("audit log", undefined)).toBe("/account/activity");
  expect(first("create token", base)).toBe("/account/tokens#new");
  expect(first("turbo", base)).toBe("/bases/bas_1/settings#turbo");
  expect(first("turbo", undefined)).toBe("/docs/syncing#turbo");
  expect(first("history_days", base)).toBe("/bases/bas_1/settings#history_days");
  expect(first("operator", undefined)).toBe("/requests");
});

test("members see only the actions that their role allows", () => {
  const base = { id: "bas_1", name: "Acme CRM" };
  const actions = (role: "viewer" | "editor") => actionItems(base, role).map(({ text }) => text);
  expect(actions("viewer")).toEqual(["Write a query"]);
  expect(actions("editor")).toEqual(expect.arrayContaining(["Resync", "Create token", "Connect a client"]));
  expect(actions("editor")).not.toContain("Invite a member");
});
