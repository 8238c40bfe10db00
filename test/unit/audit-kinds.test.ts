/** Every action of the audit log belongs to one kind, so each entry is in one of the filters. */
import { expect, test } from "vitest";
import { auditActions, auditKinds } from "../../core/control/audit";

test.each(Object.keys(auditActions))("%s has one kind", (action) => {
  const kinds = Object.values(auditKinds).filter((prefixes) =>
    prefixes.some((prefix) => action.startsWith(prefix)),
  );
  expect(kinds).toHaveLength(1);
});
