/** Writes tasks with TypeORM: a record with the id that Airtable gives it, its change, another's end, and an error. Prints the error's SQLSTATE. */
import "reflect-metadata";
import { DataSource, EntitySchema } from "typeorm";

const Task = new EntitySchema({
  name: "Task",
  schema: "write",
  tableName: "tasks",
  columns: {
    id: { type: "text", primary: true, insert: false, generated: "identity" },
    name: { type: "text", nullable: true },
    status: { type: "text", nullable: true },
  },
});
const source = await new DataSource({
  type: "postgres",
  url: process.argv[2],
  poolSize: 1,
  entities: [Task],
}).initialize();
const tasks = source.getRepository(Task);
const task = await tasks.save({ name: "TypeORM", status: "Open" });
if (!task.id.startsWith("rec")) throw new Error(`the id is ${task.id}`);
await tasks.update({ id: task.id }, { status: "Done" });
const other = await tasks.save({ name: "TypeORM gone" });
await tasks.delete({ id: other.id });
await tasks.save({ status: "None" }).catch(({ code }) => console.log(code));
await source.destroy();
