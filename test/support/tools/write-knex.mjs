/** Writes tasks with Knex: a rollback, a commit, and an error. Prints the error's SQLSTATE. */
import knex from "knex";

const db = knex({ client: "pg", connection: process.argv[2], pool: { min: 0, max: 1 } });
const tasks = () => db.withSchema("write").table("tasks");
await db
  .transaction(async (trx) => {
    await trx.withSchema("write").table("tasks").insert({ name: "Knex gone" });
    throw new Error("roll back");
  })
  .catch(() => {});
await tasks().insert([
  { name: "Knex 1", status: "Open" },
  { name: "Knex 2", status: "Open" },
]);
await tasks().where({ name: "Knex 1" }).update({ status: "Done" });
await tasks().where({ name: "Knex 2" }).delete();
await tasks()
  .insert({ status: "None" })
  .catch(({ code }) => console.log(code));
await db.destroy();
