/**
 * Which servers a write waits for, and what its client is told (S13, I1), as a property of random accounts and keys.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ConnectedBase } from "../../core/proxy";
import { relationOf } from "../../core/proxy/relation";
import { fuzzRuns } from "../support/fuzz";

interface Drawn {
  account: number;
  key: number;
  isExternal: boolean;
}

const drawn = fc.record({ account: fc.nat(2), key: fc.nat(3), isExternal: fc.boolean() });
const scenes = fc.record({
  bases: fc.array(drawn, { minLength: 1, maxLength: 6 }),
  // One more than there are bases: it belongs to none.
  writing: fc.nat(4),
});

const basesOf = (all: Drawn[]) =>
  all.map(
    ({ account, key, isExternal }, index) =>
      ({
        id: `b${index}`,
        accountId: `a${account}`,
        encryptedApiKey: String(key),
        isExternal,
      }) as ConnectedBase,
  );

test("a write waits only for servers of accounts known to write, and says shown to no client that may not see it", () => {
  fc.assert(
    fc.property(scenes, ({ bases: all, writing }) => {
      const bases = basesOf(all);
      const isWriters = ({ encryptedApiKey }: ConnectedBase) => encryptedApiKey === String(writing);
      const writers = new Set(bases.filter(isWriters).map(({ accountId }) => accountId));
      const accounts = new Set(bases.map(({ accountId }) => accountId));
      for (const base of bases) {
        const relation = relationOf(base, bases, isWriters);
        // The possible accounts of this client, as far as known.
        const mayBe = writers.size > 0 ? writers : accounts;
        if (!base.isExternal) expect(relation).toBe("awaited");
        else if (relation === "awaited") {
          expect(isWriters(base) || (writers.size === 0 && accounts.size === 1)).toBe(true);
        }
        expect(relation === "others").toBe(base.isExternal && !mayBe.has(base.accountId));
        if (isWriters(base)) expect(relation).toBe("awaited");
      }
    }),
    { numRuns: 300 * fuzzRuns },
  );
});
