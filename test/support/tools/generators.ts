/**
 * Programs that read a database, from the packages that this folder pins; of generators of code, what each writes for a base, and
 * what the compiler says about it.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPinned } from "../install-pinned";
import { node } from "../node";

export interface Generated {
  /** All that was written. */
  text: string;
  /** What the tool printed if it failed, or the compiler's errors. */
  faults: string;
}

interface Run {
  url: string;
  /** Where it writes. */
  out: string;
  relations: string[];
}

interface Tool {
  /** Words after Node. @returns after it has written its configuration */
  words(run: Run): string[];
  /** It would read a configuration of the compiler in a folder above. */
  isOutside?: true;
}

const put = (folder: string, name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return name;
};

/** Where each part of a URL is an argument. */
function parts(url: string): Record<"host" | "port" | "database" | "user" | "password", string> {
  const { hostname: host, port, pathname, username: user, password } = new URL(url);
  return { host, port, database: pathname.slice(1), user, password: decodeURIComponent(password) };
}

export const generators = {
  "drizzle-kit pull": {
    words: ({ url, out }) => {
      const config = { dialect: "postgresql", out: "src", dbCredentials: { url } };
      return [
        "node_modules/drizzle-kit/bin.cjs",
        "pull",
        `--config=${put(out, "drizzle.config.json", JSON.stringify(config))}`,
      ];
    },
  },
  "kysely-codegen": {
    words: ({ url }) => [
      "node_modules/kysely-codegen/dist/cli/bin.js",
      ...["--dialect", "postgres", "--url", url, "--out-file", "src/db.ts"],
    ],
  },
  "pg-to-ts": {
    isOutside: true,
    words: ({ url, out }) => [
      "node_modules/pg-to-ts/dist/cli.js",
      ...["generate", "-c", url, "-o", join(out, "src/db.ts")],
    ],
  },
  "sequelize-auto": {
    words: ({ url }) => {
      const { host, port, database, user, password } = parts(url);
      return [
        "node_modules/sequelize-auto/bin/sequelize-auto",
        ...["-h", host, "-p", port, "-d", database, "-u", user, "-x", password],
        ...["-e", "postgres", "-o", "src", "-l", "ts"],
      ];
    },
  },
  "typeorm-model-generator": {
    words: ({ url }) => {
      const { host, port, database, user, password } = parts(url);
      return [
        "node_modules/typeorm-model-generator/bin/typeorm-model-generator",
        ...["-h", host, "-p", port, "-d", database, "-u", user, "-x", password],
        ...["-e", "postgres", "-o", "src", "--noConfig"],
      ];
    },
  },
  zapatos: {
    words: ({ url, out }) => {
      const schemas = { public: { include: "*", exclude: [] } };
      put(
        out,
        "zapatosconfig.json",
        JSON.stringify({ db: { connectionString: url }, outDir: "src", schemas }),
      );
      return ["node_modules/zapatos/dist/generate/cli.js"];
    },
  },
  kanel: {
    words: ({ url, out }) => [
      "node_modules/kanel/bin/kanel",
      "-c",
      put(
        out,
        "kanel.config.cjs",
        `module.exports = ${JSON.stringify({ connection: url, outputPath: "src", schemas: ["public"] })};`,
      ),
    ],
  },
  pgtyped: {
    words: ({ url, out, relations }) => {
      const { host, port, database: dbName, user, password } = parts(url);
      const queries = relations.map((name, nth) => `/* @name Q${nth} */\nselect * from "${name}";\n`);
      put(join(out, "src"), "queries.sql", queries.join("\n"));
      const transforms = [{ mode: "sql", include: "**/*.sql", emitTemplate: "{{dir}}/{{name}}.queries.ts" }];
      const db = { host, port: Number(port), user, password, dbName };
      const config = { transforms, srcDir: "src/", db, failOnError: true };
      return [
        "node_modules/@pgtyped/cli/lib/index.js",
        "-c",
        put(out, "config.json", JSON.stringify(config)),
      ];
    },
  },
} satisfies Record<string, Tool>;
export type GeneratorName = keyof typeof generators;

/** The folder that pins the packages. */
export const TOOLS_FOLDER = import.meta.dirname;

const toolsFolder = () => installPinned(TOOLS_FOLDER, "basetide-tools", "tools");

/**
 * Runs a program of this folder with these packages.
 *
 * @returns what it printed; @throws with all of it if it fails
 */
export async function runInTools(program: string, ...words: string[]): Promise<string> {
  const installed = toolsFolder();
  const own = join(installed, `${crypto.randomUUID().slice(0, 8)}-${program}`);
  cpSync(join(TOOLS_FOLDER, program), own);
  try {
    const child = Bun.spawn([node!, "--no-deprecation", own, ...words], { stdout: "pipe", stderr: "pipe" });
    const [out, errors, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`${program}: ${out}${errors}`);
    return out;
  } finally {
    rmSync(own);
  }
}

/** Node 22, for programs that need it; undefined if npm has none for this machine. */
export function node22(): string | undefined {
  const path = join(toolsFolder(), "node_modules", `node-${process.platform}-${process.arch}`, "bin/node");
  return existsSync(path) ? path : undefined;
}

/** Generates the code, and compiles it with the libraries that it imports. */
export async function generate(name: GeneratorName, url: string, relations: string[]): Promise<Generated> {
  const installed = toolsFolder();
  // In the folder of the packages, where the code finds them.
  const out = join(installed, `base-${crypto.randomUUID().slice(0, 8)}`);
  mkdirSync(join(out, "src"), { recursive: true });
  try {
    const tool: Tool = generators[name];
    const [program, ...words] = tool.words({ url, out, relations });
    const said = await run(tool.isOutside ? tmpdir() : out, join(installed, program!), ...words);
    const text = filesIn(join(out, "src"))
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(file, "utf8"))
      .join("\n");
    if (said.code !== 0) return { text, faults: said.printed };
    put(out, "tsconfig.json", JSON.stringify({ compilerOptions: COMPILER, include: ["src"] }));
    const compiled = await run(
      out,
      join(installed, "node_modules/typescript/bin/tsc"),
      "-p",
      "tsconfig.json",
    );
    return { text, faults: compiled.code === 0 ? "" : compiled.printed };
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

const COMPILER = {
  ...{ target: "ES2022", module: "Preserve", moduleResolution: "bundler", noEmit: true, skipLibCheck: true },
  ...{ strict: true, strictPropertyInitialization: false, experimentalDecorators: true, types: ["node"] },
};

function filesIn(folder: string): string[] {
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesIn(path) : [path]));
}

async function run(cwd: string, ...words: string[]): Promise<{ code: number; printed: string }> {
  const child = Bun.spawn([node!, ...words], { cwd, stdout: "pipe", stderr: "pipe" });
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, printed: `${out}${errors}` };
}
