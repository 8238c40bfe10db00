/** A small base at the source for the life of a base: projects and their tasks. */
import type { SandboxHandle } from "../../apps/sandbox/server";
import type { SourceDump } from "../support/compare-to-source";

export interface SourceBase {
  id: string;
  projects: string[];
  tasks: string[];
  dump(): SourceDump;
}

export function makeSourceBase({ control }: SandboxHandle, name: string): SourceBase {
  const unique = crypto.randomUUID().replaceAll("-", "").slice(0, 13);
  const [projectsId, tasksId] = [`tblP${unique}`, `tblT${unique}`];
  const idOf = (letter: string, at: number) => `rec${letter}${at}${unique.slice(0, 12)}`;
  const projects = [0, 1, 2].map((at) => idOf("P", at));
  const tasks = [0, 1, 2, 3].map((at) => idOf("T", at));
  const id = control.createBase({
    name,
    tables: [
      {
        id: projectsId,
        name: "Projects",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Amount", type: "number", options: { precision: 2 } },
        ],
        records: projects.map((project, at) => ({
          id: project,
          fields: { Name: `Project ${at}`, Amount: at },
        })),
      },
      {
        id: tasksId,
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Done", type: "checkbox", options: { icon: "check", color: "greenBright" } },
        ],
        records: tasks.map((task, at) => ({ id: task, fields: { Name: `Task ${at}`, Done: at % 2 === 0 } })),
      },
    ],
  });
  control.addField(id, "Projects", {
    name: "Tasks",
    type: "multipleRecordLinks",
    options: { linkedTableId: tasksId },
  });
  control.updateRecords(id, "Projects", [
    { id: projects[0]!, fields: { Tasks: tasks.slice(0, 2) } },
    { id: projects[1]!, fields: { Tasks: tasks.slice(2) } },
  ]);
  return { id, projects, tasks, dump: () => control.dump(id) as unknown as SourceDump };
}
