/** The firewall that docs/operations.md recommends, in a network namespace: what it lets through, and what not. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BURST, PER_SECOND } from "../../security/firewall";
import { repoRoot } from "../../support/source-files";

const file = join(repoRoot, "docs/firewall.nft");
const rules = readFileSync(file, "utf8");

/** In a network namespace, which only root may create. @returns undefined if none can be created */
function inOwnNetwork(script: string): string | undefined {
  if (!["unshare", "nft", "ip"].every((program) => Bun.which(program))) return undefined;
  const ran = Bun.spawnSync(["unshare", "--net", "sh", "-ec", `ip link set lo up; ${script}`]);
  const isAllowed = Bun.spawnSync(["unshare", "--net", "nft", "list", "tables"]).success;
  if (!isAllowed) return undefined;
  expect(ran.exitCode, ran.stderr.toString()).toBe(0);
  return ran.stdout.toString();
}

test("the attacks' substitute has the limits of the rules", () => {
  const [, perSecond, burst] = /ip saddr limit rate over (\d+)\/second burst (\d+) packets/.exec(rules) ?? [];
  expect([Number(perSecond), Number(burst)]).toEqual([PER_SECOND, BURST]);
});

test("a network connects up to its limit, everything beyond is refused, and loading the rules twice has no effect", async ({
  skip,
}) => {
  // On loopback, which the rules let through in production.
  const strict = rules.replace(/^.*return$/gm, "");
  const connect = `
    const server = Bun.listen({ hostname: "127.0.0.1", port: 5432, socket: { data() {} } });
    const open = async () => {
      try {
        await Bun.connect({ hostname: "127.0.0.1", port: 5432, socket: { data() {} } });
        return true;
      } catch {
        return false;
      }
    };
    const all = await Promise.all(Array.from({ length: 100 }, open));
    console.log(all.filter(Boolean).length);
    process.exit(0);`;
  const said = inOwnNetwork(
    `nft -f ${file}; nft -f - <<'RULES'\n${strict}\nRULES\n${process.execPath} -e '${connect}'`,
  );
  if (said === undefined) return skip("only root may make a network, with nft and ip");
  const connected = Number(said);
  expect(connected).toBeGreaterThanOrEqual(BURST);
  expect(connected).toBeLessThan(100);
});
