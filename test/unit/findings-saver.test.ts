/** What a lease finds out is saved in the end, whatever fails meanwhile; a part that is dropped is not saved later. */
import { expect, test, vi } from "vitest";
import { createLogger } from "../../core/log";
import type { Findings } from "../../core/sync/host";
import { FindingsSaver } from "../../core/sync/lease/findings-saver";

const log = createLogger("silent", "test");
const errorOf = (message: string): Findings => ({
  schemaError: { code: "source_timeout", message, since: "2026-11-20T10:00:00Z" },
});

/** A host whose saves wait until they are released, and fail while `isDown`. */
function host() {
  const saved: Findings[] = [];
  const state = { isDown: false, tries: 0, held: Promise.resolve() };
  return {
    saved,
    state,
    async save(_id: string, findings: Findings) {
      await state.held;
      state.tries++;
      if (state.isDown) throw new Error("unreachable");
      saved.push(findings);
    },
  };
}

test("only the latest state of a part is saved, and the end of the lease saves it at once", async () => {
  const { saved, ...rest } = host();
  {
    await using saver = new FindingsSaver(rest, "bas_1", log);
    for (const message of ["one", "two", "three"]) saver.note("schemaError", () => errorOf(message));
    await vi.waitUntil(() => saved.length === 1);
    saver.note("schemaError", () => errorOf("last"));
  }
  expect(saved.at(-1)).toEqual(errorOf("last"));
  expect(saved.length).toBeLessThanOrEqual(3);
});

test("a part that cannot be saved does not delay another, and is tried again at the end", async () => {
  const { saved, state, ...rest } = host();
  state.isDown = true;
  {
    await using saver = new FindingsSaver(rest, "bas_1", log);
    saver.note("schemaError", () => errorOf("kept"));
    await vi.waitUntil(() => state.tries === 1);
    state.isDown = false;
    saver.note("problems", () => ({ problems: [] }));
    await vi.waitUntil(() => saved.length > 0);
    expect(saved).toContainEqual({ problems: [] });
  }
  expect(saved).toContainEqual(errorOf("kept"));
});

test("a part that was dropped is not saved after that", async () => {
  const { saved, state, ...rest } = host();
  const held = Promise.withResolvers<void>();
  state.held = held.promise;
  {
    await using saver = new FindingsSaver(rest, "bas_1", log);
    saver.note("problems", () => ({ problems: [] }));
    saver.note("problems", () => ({ problems: [] }));
    const dropped = saver.drop("problems");
    held.resolve();
    await dropped;
    expect(saved).toHaveLength(1);
  }
  expect(saved).toHaveLength(1);
});
