/** A base as customers have them, with a field of every kind that the data browser shows in its own way. */
import type { SandboxHandle } from "../../apps/sandbox/server";

/** More than one page of the grid. */
export const TASKS = 230;
const STATES = ["Planned", "In progress", "Review", "Done"];
const COLORS = ["grayLight2", "blueBright", "yellowLight1", "greenBright"];
const AREAS = ["Design", "Engineering", "Research", "Marketing", "Support"];
const AREA_COLORS = ["purpleLight2", "cyanLight2", "orangeLight1", "pinkBright", "tealDark1"];
const VERBS = ["Draft", "Review", "Ship", "Test", "Plan", "Measure", "Fix", "Translate"];
const OBJECTS = [
  "landing page",
  "pricing",
  "import",
  "onboarding",
  "API reference",
  "release notes",
  "dashboard",
];
const PEOPLE = ["Ana Moreau", "Bo Lindqvist", "Chidi Okafor", "Dana Petrova", "Emre Yılmaz"];

const record = (prefix: string, index: number) =>
  `rec${prefix}${String(index).padStart(14 - prefix.length, "0")}`;

/** @returns the base's id in the sandbox */
export function projectBase(sandbox: SandboxHandle, name = "Project Tracker"): string {
  return sandbox.control.createBase({
    name,
    tables: [
      {
        id: "tblTasks000000001",
        name: "Tasks",
        primaryFieldId: "fldTitle000000001",
        fields: [
          { id: "fldTitle000000001", name: "Title", type: "singleLineText" },
          {
            name: "Status",
            type: "singleSelect",
            options: {
              choices: STATES.map((one, index) => ({ id: `selS${index}`, name: one, color: COLORS[index] })),
            },
          },
          {
            name: "Areas",
            type: "multipleSelects",
            options: {
              choices: AREAS.map((one, index) => ({
                id: `selA${index}`,
                name: one,
                color: AREA_COLORS[index],
              })),
            },
          },
          {
            id: "fldProject0000001",
            name: "Project",
            type: "multipleRecordLinks",
            options: { linkedTableId: "tblProjects000001", inverseLinkFieldId: "fldItsTasks000001" },
          },
          { name: "Done", type: "checkbox", options: { icon: "check", color: "greenBright" } },
          {
            name: "Estimate",
            type: "number",
            description: "Hours of work.\n\nWithout <meetings>.",
            options: { precision: 1 },
          },
          { name: "Budget", type: "currency", options: { precision: 2, symbol: "$" } },
          { name: "Due", type: "date", options: { dateFormat: { name: "iso", format: "YYYY-MM-DD" } } },
          { name: "Owner", type: "singleCollaborator" },
          { name: "Files", type: "multipleAttachments", options: { isReversed: false } },
          { name: "Priority", type: "rating", options: { icon: "star", max: 5, color: "yellowBright" } },
          { name: "Link", type: "url" },
          { name: "Notes", type: "multilineText" },
          { name: "Code", type: "barcode" },
        ],
        records: Array.from({ length: TASKS }, (_, index) => task(index)),
      },
      {
        id: "tblProjects000001",
        name: "Projects & more",
        primaryFieldId: "fldName0000000001",
        fields: [
          { id: "fldName0000000001", name: "Name", type: "singleLineText" },
          {
            id: "fldItsTasks000001",
            name: "Tasks",
            type: "multipleRecordLinks",
            options: { linkedTableId: "tblTasks000000001", inverseLinkFieldId: "fldProject0000001" },
          },
          { name: "Progress", type: "percent", options: { precision: 0 } },
        ],
        records: ["Website", "Mobile app", "<b>Billing</b>"].map((one, index) => ({
          id: record("Project", index),
          fields: { Name: one, Progress: (index + 1) / 4 },
        })),
      },
      { name: "Empty", fields: [{ name: "Name", type: "singleLineText" }] },
    ],
  });
}

function task(index: number) {
  const has = (every: number) => index % every !== 0;
  const person = PEOPLE[index % PEOPLE.length]!;
  return {
    id: record("Task", index),
    createdTime: new Date(Date.UTC(2026, 0, 1) + index * 3_600_000).toISOString(),
    fields: {
      Title: `${VERBS[index % VERBS.length]} ${OBJECTS[index % OBJECTS.length]} ${index}`,
      Status: STATES[index % STATES.length],
      Areas: AREAS.filter((_, area) => (index + area) % 3 === 0),
      Project: [record("Project", index % 3)],
      ...(has(2) ? { Done: true } : {}),
      ...(has(5) ? { Estimate: (index * 7) % 41 } : {}),
      Budget: ((index * 7919) % 100_000) / 4,
      ...(has(7)
        ? { Due: new Date(Date.UTC(2026, 10, 1) + (index % 60) * 86_400_000).toISOString().slice(0, 10) }
        : {}),
      Owner: {
        id: `usr${index % 5}`,
        email: `${person.split(" ")[0]!.toLowerCase()}@example.com`,
        name: person,
      },
      ...(has(3)
        ? {}
        : {
            Files: [
              { id: `att${index}`, url: "https://files.example.com/brief.pdf", filename: "brief.pdf" },
              {
                ...{ id: `attPicture${String(index).padStart(7, "0")}`, url: "https://files.example.com/x" },
                ...{
                  filename: `sketch-${index}.png`,
                  type: "image/png",
                  size: 1000,
                  width: 800,
                  height: 600,
                },
              },
            ],
          }),
      Priority: (index % 5) + 1,
      Link: `https://example.com/tasks/${index}`,
      Notes: index === 0 ? "=1+1" : `First line of task ${index}.\n${"More about it. ".repeat(12)}`,
      ...(index < 2 ? { Code: { text: `not a number ${index}` } } : {}),
    },
  };
}
