/** Sign-ins with invented addresses add rows without limit. */
import { type Attack, paced, Tally } from "../attack";
import { randomAddress, type Service } from "../service";

const PER_ROUND = 80;
const PER_SECOND = 60;
/** Attempts within a client's own limit may add a row or two each minute; the others must not. */
const ALLOWED = 30;

export const attemptsGrowth: Attack = {
  name: "attempts-growth",
  finding: "S20",
  async run(service, rounds, random) {
    const tally = new Tally();
    for (let round = 0; round < rounds; round++) {
      const address = randomAddress(random);
      const before = await rows(service);
      await paced(Array(PER_ROUND), PER_SECOND, async () => {
        const email = `nobody${random.int(1, 1e12)}@example.org`;
        await service.browser(address).post("/sign-in", { email, password: "x", next: "/bases" });
      });
      const left = (await rows(service)) - before;
      tally.addMany(
        PER_ROUND,
        Math.max(0, Math.min(PER_ROUND, left - ALLOWED)),
        `rows left by one client (${left})`,
      );
    }
    return tally;
  },
};

/** Counts the rows of all control-plane tables that count attempts or limits, whatever their names. */
async function rows(service: Service): Promise<number> {
  const sql = service.pool(service.control.url);
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') and tablename ~ 'attempt|rate_?limit|throttle'`;
  let count = 0;
  for (const { name } of tables) {
    const [row] = await sql.unsafe<{ count: number }[]>(`select count(*)::int as count from ${name}`);
    count += row!.count;
  }
  return count;
}
