/** `destination`: the database of a base. A base cannot move by a file, because its data would have to be read again. */
import { z } from "zod";
import { secret } from "../secret";
import type { BasePart } from "./part";

const schema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("new"), region: z.string().optional() }),
  z.strictObject({ kind: z.literal("existing"), database_id: z.string(), schema: z.string() }),
  z.strictObject({ kind: z.literal("external"), url: secret, schema: z.string().optional() }),
]);

export const destinationPart: BasePart<z.infer<typeof schema>> = {
  key: "destination",
  schema,
  read: ({ database }) => ({ kind: "existing", database_id: database.id, schema: database.schema }),
  // How it was connected says nothing about it once it exists.
  isOwn: ({ kind }) => kind !== "existing",
  compare(wanted, { database }, { path, problem }) {
    if (
      wanted.kind === "existing" &&
      (wanted.database_id !== database.id || wanted.schema !== database.schema)
    ) {
      problem(
        path,
        `the base is in ${database.id}, schema ${database.schema}. To move it, delete it and connect it again, or correct the file with \`basetide pull\``,
      );
    }
    if (wanted.kind === "external" && wanted.schema && wanted.schema !== database.schema) {
      problem(
        [...path, "schema"],
        `the base is in the schema ${database.schema}. Correct the file with \`basetide pull\``,
      );
    }
    return undefined;
  },
  connect: (wanted) => ({ destination: wanted }),
};
