/** Prisma's own client, generated from a schema and queried: the packages take 300 MB, so they are installed on demand. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { installPinned } from "../install-pinned";

export const PRISMA_FOLDER = import.meta.dirname;

/**
 * Describes a database as `prisma db pull` does. That command downloads the engine; npm has it as WebAssembly.
 *
 * @returns the schema, with a generator
 */
export async function pullWithPrisma(url: string): Promise<string> {
  const installed = installPinned(PRISMA_FOLDER, "basetide-prisma", "Prisma");
  const program = join(installed, `pull-${crypto.randomUUID().slice(0, 8)}.mjs`);
  cpSync(join(PRISMA_FOLDER, "pull.mjs"), program);
  try {
    return `generator client {\n  provider = "prisma-client-js"\n}\n\n${await run(installed, undefined, program, url)}`;
  } finally {
    rmSync(program);
  }
}

/**
 * Generates the client, and reads all rows of every model with everything that it is related to.
 *
 * @returns by table, the number of rows, or the error
 */
export async function countWithPrisma(schema: string, url: string): Promise<Record<string, number | string>> {
  const [counts] = await runWithPrisma(schema, PROGRAM, [process.env.TZ], url);
  return counts as Record<string, number | string>;
}

/**
 * Generates the client, and reads the model `Moments` in each zone.
 *
 * @returns by zone, of each row the times, the day, and how many rows equal and follow it
 */
export function momentsWithPrisma(schema: string, zones: readonly string[], url: string): Promise<unknown[]> {
  return runWithPrisma(schema, MOMENTS_PROGRAM, zones, url);
}

/**
 * Generates a client of `write.tasks`, and writes with it: a record with the id that Airtable gives it, its change, another's
 * end, and an error.
 *
 * @returns the error's SQLSTATE
 */
export async function writeWithPrisma(url: string): Promise<unknown> {
  const [code] = await runWithPrisma(WRITE_SCHEMA, WRITE_PROGRAM, [undefined], url);
  return code;
}

async function runWithPrisma(
  schema: string,
  program: string,
  zones: readonly (string | undefined)[],
  url: string,
): Promise<unknown[]> {
  const installed = installPinned(PRISMA_FOLDER, "basetide-prisma", "Prisma");
  // In the folder of the packages, where the client finds its runtime.
  const folder = join(installed, `base-${crypto.randomUUID().slice(0, 8)}`);
  mkdirSync(folder);
  const put = (name: string, text: string) => writeFileSync(join(folder, name), text);
  try {
    const provider = 'provider = "prisma-client-js"';
    put("schema.prisma", schema.replace(provider, `${provider}\n  output = "./client"`));
    put("prisma.config.ts", 'export default { schema: "schema.prisma" };\n');
    put("main.mjs", program);
    await run(folder, undefined, join(installed, "node_modules/prisma/build/index.js"), "generate");
    const found: unknown[] = [];
    for (const zone of zones) found.push(JSON.parse(await run(folder, zone, "main.mjs", url)));
    return found;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const PROGRAM = `
import { PrismaPg } from "@prisma/adapter-pg";
import prisma from "./client/index.js";

const client = new prisma.PrismaClient({
  adapter: new PrismaPg({ connectionString: process.argv[2], max: 1 }),
});
const counts = {};
for (const { name, dbName, fields } of prisma.Prisma.dmmf.datamodel.models) {
  const related = fields.filter(({ kind }) => kind === "object").map((field) => [field.name, true]);
  const include = related.length > 0 ? { include: Object.fromEntries(related) } : {};
  const reading = client[name[0].toLowerCase() + name.slice(1)].findMany(include);
  counts[dbName ?? name] = await reading.then(({ length }) => length, (error) => error.message);
}
await client.$disconnect();
console.log(JSON.stringify(counts));
`;

const MOMENTS_PROGRAM = `
import { PrismaPg } from "@prisma/adapter-pg";
import prisma from "./client/index.js";

const adapter = new PrismaPg({ connectionString: process.argv[2], max: 1 });
const { moments } = new prisma.PrismaClient({ adapter });
const lines = [];
for (const { created_time, seen, day } of await moments.findMany({ orderBy: { id: "asc" } })) {
  const equal = await moments.count({ where: { created_time } });
  const following = await moments.count({ where: { created_time: { gte: created_time } } });
  lines.push([created_time.toISOString(), seen.toISOString(), day.toISOString().slice(0, 10), equal, following]);
}
console.log(JSON.stringify(lines));
process.exit(0);
`;

const WRITE_SCHEMA = `generator client {
  provider = "prisma-client-js"
}
datasource db {
  provider = "postgresql"
}
model tasks {
  id     String  @id @default(dbgenerated())
  name   String?
  status String?
}
`;

const WRITE_PROGRAM = `
import { PrismaPg } from "@prisma/adapter-pg";
import prisma from "./client/index.js";

const adapter = new PrismaPg({ connectionString: process.argv[2], max: 1 }, { schema: "write" });
const { tasks } = new prisma.PrismaClient({ adapter });
const { id } = await tasks.create({ data: { name: "Prisma", status: "Open" } });
await tasks.update({ where: { id }, data: { status: "Done" } });
const other = await tasks.create({ data: { name: "Prisma gone" } });
await tasks.delete({ where: { id: other.id } });
const error = await tasks.create({ data: { status: "None" } }).catch((thrown) => thrown);
const cause = error.meta?.driverAdapterError?.cause;
console.log(JSON.stringify(cause?.originalCode ?? cause?.code ?? error.message));
process.exit(0);
`;

/** @throws with all it printed if it fails */
async function run(cwd: string, zone: string | undefined, ...command: string[]): Promise<string> {
  // The engine of migrations would be downloaded, although generating a client runs none.
  const env = {
    ...process.env,
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    CHECKPOINT_DISABLE: "1",
    ...(zone ? { TZ: zone } : {}),
  };
  const child = Bun.spawn([process.execPath, ...command], { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [out, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${out}${errors}`);
  return out;
}
