/** Writes tasks with Sequelize: a record with the id that Airtable gives it, its change, another's end, and an error. Prints the error's SQLSTATE. */
import { DataTypes, Sequelize } from "sequelize";

const db = new Sequelize(process.argv[2], { logging: false, pool: { max: 1 } });
const Task = db.define(
  "Task",
  {
    id: { type: DataTypes.TEXT, primaryKey: true, autoIncrementIdentity: true },
    name: DataTypes.TEXT,
    status: DataTypes.TEXT,
  },
  { schema: "write", tableName: "tasks", timestamps: false },
);
const task = await Task.create({ name: "Sequelize", status: "Open" }, { fields: ["name", "status"] });
if (!task.id.startsWith("rec")) throw new Error(`the id is ${task.id}`);
await task.update({ status: "Done" });
const other = await Task.create({ name: "Sequelize gone" }, { fields: ["name"] });
await other.destroy();
await Task.create({ status: "None" }, { fields: ["status"] }).catch(({ original }) =>
  console.log(original.code),
);
await db.close();
