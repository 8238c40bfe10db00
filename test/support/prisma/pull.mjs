/** Prints the Prisma schema of a database, as the engine of `prisma db pull` describes it. */
import { readFileSync } from "node:fs";
import { PrismaPg } from "@prisma/adapter-pg";
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum } from "@prisma/driver-adapter-utils";
import * as engine from "@prisma/schema-engine-wasm/schema_engine_bg";
import pg from "pg";

const TEXT = 25;
/** Postgres' type of one byte, in its catalog: the adapter does not know it. */
const CHAR = 18;

const wasm = new URL(
  "schema_engine_bg.wasm",
  import.meta.resolve("@prisma/schema-engine-wasm/schema_engine_bg"),
);
const { instance } = await WebAssembly.instantiate(readFileSync(wasm), { "./schema_engine_bg.js": engine });
engine.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

let chars = [];

class Pool extends pg.Pool {
  async query(...args) {
    const result = await super.query(...args);
    chars = result.fields.flatMap(({ dataTypeID }, at) => (dataTypeID === CHAR ? [at] : []));
    for (const at of chars) result.fields[at].dataTypeID = TEXT;
    return result;
  }
}

class Adapter extends PrismaPg {
  async connect() {
    const adapter = await super.connect();
    const queryRaw = adapter.queryRaw.bind(adapter);
    adapter.queryRaw = async (query) => {
      const result = await queryRaw(query);
      for (const at of chars) result.columnTypes[at] = ColumnTypeEnum.Character;
      return result;
    };
    return adapter;
  }
}

const content = 'datasource db {\n  provider = "postgresql"\n}\n';
const factory = new Adapter(new Pool({ connectionString: process.argv[2], max: 1 }));
const puller = await engine.SchemaEngine.new(
  { datamodels: [["schema.prisma", content]] },
  () => {},
  bindMigrationAwareSqlAdapterFactory(factory),
);
const { schema } = await puller.introspect({
  ...{ schema: { files: [{ path: "schema.prisma", content }] }, baseDirectoryPath: process.cwd() },
  ...{ force: false, compositeTypeDepth: 0, namespaces: null },
});
process.stdout.write(schema.files[0].content, () => process.exit());
