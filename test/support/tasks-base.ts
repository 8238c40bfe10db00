/** The base of the tests that write records: tasks and people, which link to them. */
import type { SandboxHandle } from "../../apps/sandbox/server";

type Control = SandboxHandle["control"];

/** Creates a base with the tasks `Task 0` … and no people. Returns its id. */
export function createTasksBase(control: Control, count: number): string {
  return control.createBase({
    name: "Work",
    tables: [
      {
        id: "tblTasks000000001",
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Hours", type: "number", options: { precision: 1 } },
          {
            name: "Status",
            type: "singleSelect",
            options: { choices: [{ name: "Open" }, { name: "Done" }] },
          },
          { name: "Due", type: "dateTime", options: { timeZone: "utc" } },
          { name: "Took", type: "duration", options: { durationFormat: "h:mm:ss" } },
          { name: "Urgent", type: "checkbox" },
          { name: "Files", type: "multipleAttachments" },
          { name: "Loud", type: "formula", options: { formula: "UPPER({Name})" } },
        ],
        records: Array.from({ length: count }, (_, at) => ({
          fields: { Name: `Task ${at}`, Hours: at, Status: "Open" },
        })),
      },
      {
        name: "People",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Tasks", type: "multipleRecordLinks", options: { linkedTableId: "tblTasks000000001" } },
        ],
        records: [],
      },
    ],
  });
}

/** The records that the source has, with their cells by the names of fields. */
export function recordsInSource(
  control: Control,
  sourceBaseId: string,
  tableName = "Tasks",
): { id: string; fields: Record<string, unknown> }[] {
  const table = control.dump(sourceBaseId).tables.find(({ name }) => name === tableName)!;
  const fields = table.fields as { id: string; name: string }[];
  const nameOf = new Map(fields.map(({ id, name }) => [id, name]));
  return table.records.map(({ id, fields }) => ({
    id,
    fields: Object.fromEntries(Object.entries(fields).map(([key, cell]) => [nameOf.get(key)!, cell])),
  }));
}
