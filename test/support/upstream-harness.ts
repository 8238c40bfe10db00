/**
 * Stands for the test program of postgres.js: runs tests in its style one after another, and prints `passed` or the
 * first failure. The program's arguments are the URL of a database, and the time for each test in ms.
 */
type Check = () => Promise<[expected: unknown, actual: unknown]>;

const [url = "", timeoutMs = ""] = process.argv.slice(2);
const { hostname, port, username, password, pathname } = new URL(url);
const checks: [name: string, check: Check][] = [];
let current = "";

export const options = {
  host: hostname,
  port: Number(port || 5432),
  user: decodeURIComponent(username),
  pass: decodeURIComponent(password),
  db: pathname.slice(1),
  idle_timeout: 1,
  connect_timeout: 30,
  max: 1,
};

export const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Adds a test. Upstream's time limit for it does not count here. */
export function t(name: string, ...rest: [Check] | [limits: object, Check]): void {
  checks.push([name, rest.at(-1) as Check]);
}

/** Runs the tests, and ends the process. */
export async function finish(): Promise<void> {
  for (const [name, check] of checks) {
    current = name;
    const late = setTimeout(() => end("no result in time"), Number(timeoutMs));
    const [expected, actual] = await check();
    clearTimeout(late);
    if (expected !== actual) end(`${String(expected)} != ${String(actual)}`);
  }
  console.log("passed");
  process.exit(0);
}

function end(reason: unknown): never {
  console.log(`${current}: ${String(reason)}`);
  process.exit(1);
}

process.on("uncaughtException", end);
process.on("unhandledRejection", end);
