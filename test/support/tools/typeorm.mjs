/** Reads tables and views with TypeORM. Prints the number of columns of each, or the error. */
import "reflect-metadata";
import { DataSource } from "typeorm";

const [url, ...names] = process.argv.slice(2);
const source = await new DataSource({ type: "postgres", url, poolSize: 1 }).initialize();
const runner = source.createQueryRunner();
const found = {};
for (const name of names) {
  try {
    found[name] = (await runner.getTable(name)).columns.length;
  } catch (error) {
    found[name] = error.message;
  }
}
console.log(JSON.stringify(found));
await source.destroy();
