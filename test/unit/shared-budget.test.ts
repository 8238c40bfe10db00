/** How clients share what a process has a limited amount of. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type BudgetShare, SharedBudget } from "../../core/http";

const runs = { numRuns: Number(process.env.FUZZ_RUNS ?? 1) * 300 };

const step = fc.record({
  key: fc.integer({ min: 0, max: 4 }),
  address: fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 3 })),
  amount: fc.integer({ min: 1, max: 6 }),
  givesWay: fc.boolean(),
  isDoubtful: fc.boolean(),
  /** Which of the open shares is closed afterwards; none if there are fewer. */
  closes: fc.integer({ min: 0, max: 12 }),
});

test("B1: nothing exceeds its limit, what gives way is free, and what is closed leaves nothing behind", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budget = new SharedBudget({ most: 30, mostPer: { key: 12, network: 10 } });
      let open: { key: string; network: string; amount: number; share: BudgetShare }[] = [];
      for (const { key, address, amount, givesWay, isDoubtful, closes } of steps) {
        const owners = { key: `k${key}`, network: `192.0.${address[0]}.${address[1]}` };
        const one = { ...owners, amount: 0, share: undefined as unknown as BudgetShare };
        const giveWay = () => {
          open = open.filter((other) => other !== one);
        };
        one.share = budget.open(owners, { giveWay: givesWay ? giveWay : undefined, isDoubtful });
        if (one.share.take(amount)) {
          one.amount = amount;
          open.push(one);
        }
        for (const closed of open.splice(closes, 1)) closed.share[Symbol.dispose]();
        const sumOf = (of: (held: typeof one) => boolean) =>
          open.filter(of).reduce((sum, held) => sum + held.amount, 0);
        expect(budget.total).toBe(sumOf(() => true));
        expect(budget.total).toBeLessThanOrEqual(30);
        for (const held of open) {
          expect(sumOf((other) => other.key === held.key)).toBeLessThanOrEqual(12);
          expect(sumOf((other) => other.network === held.network)).toBeLessThanOrEqual(10);
        }
      }
      for (const { share } of open) share[Symbol.dispose]();
      expect(budget.total).toBe(0);
    }),
    runs,
  );
});

/** Fills a budget of 60 from these networks, one each. @returns what gave way, in order */
function filled(networks: string[], options: { isDoubtful?: boolean } = {}) {
  const budget = new SharedBudget({ most: networks.length, mostPer: { network: networks.length } });
  const gone: string[] = [];
  for (const network of networks) {
    const giveWay = () => void gone.push(network);
    expect(budget.open({ network }, { giveWay, ...options }).take(1)).toBe(true);
  }
  return { budget, gone };
}

const sixty = Array.from({ length: 60 }, (_, index) => index);

test.for([
  ["one address", () => "192.0.2.1"],
  ["60 addresses of a /24", (index: number) => `192.0.2.${index}`],
  ["60 addresses of a /16, as many /24s", (index: number) => `192.0.${index}.7`],
  ["60 /64s of a /56", (index: number) => `2001:db8:0:${index.toString(16)}::/64`],
  ["60 /56s of a /48", (index: number) => `2001:db8:0:${(index << 8).toString(16)}::/64`],
  ["60 /48s of a /32", (index: number) => `2001:db8:${index.toString(16)}:1::/64`],
  ["60 keys from an address that may be a reverse proxy's", (index: number) => `127.0.2.1 key${index}`],
] as const)("B2: %s fill a budget, and make room for a client elsewhere", ([, networkOf]) => {
  for (const network of ["198.51.100.1", "2a00:1:2:3::/64", "unknown"]) {
    const { budget, gone } = filled(sixty.map(networkOf));
    expect(budget.open({ network }).take(1)).toBe(true);
    // The newest one.
    expect([gone, budget.total]).toEqual([[networkOf(59)], 60]);
    expect(budget.open({ network: networkOf(3) }).take(1)).toBe(false);
  }
});

test("B2: a client makes no room for more than others have, nor of what is kept, and doubtful ones give way first", () => {
  const { budget, gone } = filled(["192.0.2.1", "198.51.100.1", "203.0.113.1"]);
  expect([budget.open({ network: "10.0.0.1" }).take(1), gone]).toEqual([false, []]);
  const { budget: doubtful, gone: first } = filled(["192.0.2.1", "198.51.100.1"], { isDoubtful: true });
  expect(doubtful.open({ network: "10.0.0.1" }, { isDoubtful: true }).take(1)).toBe(false);
  expect([doubtful.open({ network: "10.0.0.1" }).take(1), first]).toEqual([true, ["198.51.100.1"]]);
  const kept = new SharedBudget({ most: 2, mostPer: { network: 2 } });
  const share = kept.open({ network: "192.0.2.1" }, { giveWay: () => expect.unreachable() });
  expect(share.take(2)).toBe(true);
  share.keep();
  expect(kept.open({ network: "10.0.0.1" }).take(1)).toBe(false);
});

test("B1: an owner that is full makes room among its own shares only", () => {
  const budget = new SharedBudget({ most: 10, mostPer: { base: 2, network: 10 } });
  const gone: string[] = [];
  const take = (base: string, network: string) =>
    budget.open({ base, network }, { giveWay: () => void gone.push(`${base} ${network}`) }).take(1);
  expect(["10.0.0.1", "10.0.0.1"].map((network) => take("a", network))).toEqual([true, true]);
  expect(Array.from({ length: 4 }, () => take(crypto.randomUUID(), "192.0.2.1"))).toEqual(
    Array(4).fill(true),
  );
  expect([take("a", "198.51.100.1"), gone]).toEqual([true, ["a 10.0.0.1"]]);
});
