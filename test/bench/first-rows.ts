/**
 * Measures the first minutes of an operator: a fresh clone of this repository's HEAD, the command of the README's quick
 * start, and the first rows of the sandbox's base in the console.
 *
 * Run: `bun run bench first-rows`, twice: the first run fills npm's and Bun's caches. It needs git, and Node with npm.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json";
import { until } from "../support/poll";
import { repoRoot } from "../support/source-files";
import { ratio, table } from "./print";

const LIMIT_S = 45;
const TIMEOUT_MS = 600_000;
const TABLE = "tasks";

export async function run(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "basetide-first-rows-"));
  const clone = join(folder, "basetide");
  const rows: [string, number][] = [];
  let from = performance.now();
  const step = (name: string) => {
    rows.push([name, (performance.now() - from) / 1000]);
    from = performance.now();
  };
  try {
    await succeeds(["git", "clone", "--quiet", repoRoot, clone], folder);
    step("git clone");
    await using up = startUp(clone);
    await until(() => /Open http/.test(up.output()), {
      what: "up prints its address",
      timeoutMs: TIMEOUT_MS,
    });
    step("bun run up --sandbox prints the address");
    const output = up.output();
    const consoleUrl = /console +(http\S+)/.exec(output)![1]!;
    const [, email, password] = /account +(\S+) with password (\S+)/.exec(output)!;
    const cookie = await signIn(consoleUrl, { email: email!, password: password! });
    step("sign in");
    const page = (path: string) =>
      fetch(`${consoleUrl}${path}`, { headers: { cookie } }).then((one) => one.text());
    const bases = [...(await page("/bases")).matchAll(/href="(\/bases\/bas_[^"/]+)"/g)].map(
      ([, path]) => path!,
    );
    const hasRows = async () => {
      for (const base of new Set(bases)) {
        if (/rec[0-9A-Za-z]{14}/.test(await page(`${base}/data/${TABLE}`))) return true;
      }
      return false;
    };
    await until(hasRows, { what: `the console shows rows of ${TABLE}`, timeoutMs: TIMEOUT_MS });
    step(`rows of ${TABLE} in the console`);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  const seconds = rows.reduce((sum, [, one]) => sum + one, 0);
  table(
    ["step", "time"],
    [...rows, ["in all", seconds] as const].map(([name, one]) => [name, `${one.toFixed(1)} s`]),
  );
  const { text, isWithin } = ratio(seconds / LIMIT_S, 1);
  console.log(`\n${text} of ${LIMIT_S} s`);
  return isWithin;
}

async function succeeds(command: string[], cwd: string): Promise<void> {
  const code = await Bun.spawn(command, { cwd, stdout: "ignore", stderr: "inherit" }).exited;
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}`);
}

/** As the README says, on free ports. */
function startUp(clone: string): { output(): string } & AsyncDisposable {
  const ports = Object.fromEntries(
    ["CONSOLE", "PROXY", "WORKER", "SANDBOX"].map((name) => [`${name}_PORT`, "0"]),
  );
  const { DATABASE_URL: _, ...env } = process.env;
  const child = Bun.spawn(["npx", "-y", `bun@${packageJson.engines.bun}`, "run", "up", "--sandbox"], {
    cwd: clone,
    env: { ...env, ...ports, DATA_DIR: join(clone, ".data"), BASETIDE_DATA: join(clone, "none") },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    // Its own group: npx does not pass every signal on.
    detached: true,
  });
  let text = "";
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) text += decoder.decode(chunk, { stream: true });
  })();
  return {
    output: () => text,
    async [Symbol.asyncDispose]() {
      process.kill(-child.pid, "SIGINT");
      await child.exited;
      // The service ends after npx, and its folder is deleted next.
      await until(() => text.includes("Stopped."), { what: "up stops", timeoutMs: 30_000 }).catch(() => {});
    },
  };
}

async function signIn(consoleUrl: string, form: { email: string; password: string }): Promise<string> {
  const answer = await fetch(`${consoleUrl}/sign-in`, {
    method: "POST",
    headers: { origin: consoleUrl },
    body: new URLSearchParams(form),
    redirect: "manual",
  });
  const cookies = answer.headers.getSetCookie().map((cookie) => cookie.split(";")[0]!);
  if (answer.status !== 303 || cookies.length === 0) throw new Error(`sign-in answers ${answer.status}`);
  return cookies.join("; ");
}
