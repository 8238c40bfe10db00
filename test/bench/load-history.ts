/** The table of releases in docs/performance.md: CPU per request of the short run of `load.ts`. */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { repoRoot } from "../support/source-files";

const PAGE = join(repoRoot, "docs/performance.md");
/** The end of the table. */
const END = "<!-- releases -->";
/** Version, commit, date, three times in µs, machine. */
const LINE = /^\| ([\w.-]+) \| `(\w+)` \| [\d-]+ \| (\d+) µs \| (\d+) µs \| (\d+) µs \| .* \|$/gm;

interface Release {
  version: string;
  /** µs per request. */
  us: { worker: number; "control plane": number; replicas: number };
}

/** Returns the last line of the table. */
export function lastRelease(): Release | undefined {
  const [, version, , worker, control, replicas] =
    [...readFileSync(PAGE, "utf8").matchAll(LINE)].at(-1) ?? [];
  if (version === undefined) return undefined;
  return {
    version,
    us: { worker: Number(worker), "control plane": Number(control), replicas: Number(replicas) },
  };
}

/** Adds a line to the table. */
export function addRelease({ version, us }: Release): void {
  const { stdout } = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"], { cwd: repoRoot });
  const times = [us.worker, us["control plane"], us.replicas].map((time) => `${Math.round(time)} µs`);
  const [cpu] = cpus();
  const line = [
    version,
    `\`${stdout.toString().trim()}\``,
    new Date().toISOString().slice(0, 10),
    ...times,
    `${cpus().length} × ${cpu?.model.replaceAll("|", " ").trim() ?? "unknown"}`,
  ].join(" | ");
  const page = readFileSync(PAGE, "utf8");
  if (!page.includes(END)) throw new Error(`docs/performance.md has no ${END}`);
  writeFileSync(PAGE, page.replace(END, `| ${line} |\n${END}`));
}
