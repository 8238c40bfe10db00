/**
 * `bun run bench <name>`: runs a bench and prints its figures as ratios to a limit, or to a baseline measured in the
 * same run. Exits with 1 if a figure exceeds its limit.
 */
const [name] = process.argv.slice(2);
const benches: Record<string, () => Promise<{ run(): Promise<boolean> }>> = {
  additive: () => import("./additive"),
  agents: () => import("./agents"),
  aliases: () => import("./aliases"),
  coalesce: () => import("./coalesce"),
  connections: () => import("./connections"),
  control: () => import("./control"),
  console: () => import("./console"),
  "data-browser": () => import("./data-browser"),
  failover: () => import("./failover"),
  "first-copy": () => import("./first-copy"),
  "first-rows": () => import("./first-rows"),
  "first-sync": () => import("./first-sync"),
  fleet: () => import("./fleet"),
  "hot-rows": () => import("./hot-rows"),
  links: () => import("./links"),
  live: () => import("./live"),
  load: () => import("./load"),
  memory: () => import("./memory"),
  page: () => import("./page"),
  permits: () => import("./permits"),
  proxy: () => import("./proxy"),
  reads: () => import("./reads"),
  "row-images": () => import("./row-images"),
  quota: () => import("./quota"),
  refused: () => import("./refused"),
  traffic: () => import("./traffic"),
  rapid: () => import("./rapid"),
  rest: () => import("./rest"),
  schema: () => import("./schema"),
  rollups: () => import("./rollups"),
  "sql-writes": () => import("./sql-writes"),
  "sweep-statement": () => import("./sweep-statement"),
  "sync-time": () => import("./sync-time"),
};

const bench = benches[name ?? ""];
if (!bench) {
  console.error(`Give the bench's name: ${Object.keys(benches).join(", ")}`);
  process.exit(2);
}
const isWithin = await (await bench()).run();
process.exit(isWithin ? 0 : 1);

export {};
