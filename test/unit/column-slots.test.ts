/** What the schema of a table says about the columns that the table has used up. */
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { expect, test } from "vitest";
import { Slots } from "../../views/schema/schema-page";

function shown(used: number, dropped: number): string {
  const page = renderToString(h(Slots, { baseId: "bas_1", slots: { name: "orders", used, dropped } }));
  return page.replaceAll(/<[^>]+>/g, "").replaceAll(/\s+/g, " ");
}

test("dropped columns are counted, and a rebuild is due once three quarters of 1,600 columns are used", () => {
  expect(shown(40, 0)).not.toContain("1,600");
  expect(shown(40, 2)).toContain("used 40 of the 1,600 columns that Postgres allows. 2 of them were dropped");
  expect(shown(1199, 900)).not.toContain("rebuild");
  expect(shown(1200, 900)).toContain(
    "A rebuild is due, which makes room: ask the operator to run operator base rebuild bas_1 orders.",
  );
});
