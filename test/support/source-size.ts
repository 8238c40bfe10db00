/**
 * Prints the size of the source and how many tuned numbers it has, next to the last figures and the most that they should be:
 * `bun run size`. With `-u`, it saves the figures as the last ones.
 *
 * Source is the code of the service: not the sandbox, tests, or what is generated. Each numeric constant of a module is a
 * number that was chosen, and that someone has to choose again.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repoFiles, repoRoot } from "./source-files";

const LAST = join(repoRoot, "test/support/source-size.json");
const MOST: Figures = { lines: 80_000, constantsPer1000Lines: 6 };
const LEFT_OUT = /^apps\/(sandbox\/|cli\/client\/(schema|facts)\.ts$)/;
/** `const TRIES = 3;`, `export const WINDOW_MS = 2 * MINUTE_MS;` */
const CONSTANT = /^(?:export )?const \w+(?:: number)? = (?=[^;\n]*\d)(?:[A-Z][A-Z0-9_]*|[\d_.e+*/() -])+;$/gm;

interface Figures {
  lines: number;
  constantsPer1000Lines: number;
}

/** Counts the numeric constants at the top level of a module. */
export function constantsIn(source: string): number {
  return source.match(CONSTANT)?.length ?? 0;
}

function measured(): Figures {
  const files = ["apps", "core", "views"]
    .flatMap((folder) => repoFiles(folder))
    .filter((path) => /\.tsx?$/.test(path) && !LEFT_OUT.test(path))
    .map((path) => readFileSync(join(repoRoot, path), "utf8"));
  const sum = (count: (source: string) => number) => files.reduce((all, source) => all + count(source), 0);
  const lines = sum((source) => source.split("\n").length - 1);
  return { lines, constantsPer1000Lines: Math.round((10_000 * sum(constantsIn)) / lines) / 10 };
}

if (import.meta.main) {
  const now = measured();
  const last = JSON.parse(readFileSync(LAST, "utf8")) as Figures;
  const row = (name: string, of: keyof Figures) =>
    console.log(`${name}: ${now[of]}, last ${last[of]}, at most ${MOST[of]} wanted`);
  row("lines of source", "lines");
  row("numeric constants in 1,000 lines", "constantsPer1000Lines");
  if (process.argv.includes("-u")) writeFileSync(LAST, `${JSON.stringify(now, null, 2)}\n`);
}
