/** The tables of a catalog: a dozen fields each, and a link to the next table. */

const STATES = ["Planned", "In progress", "Review", "Done"];
const COLORS = ["grayLight2", "blueBright", "yellowLight1", "greenBright"];
const PEOPLE = ["Ana Moreau", "Bo Lindqvist", "Chidi Okafor", "Dana Petrova", "Emre Yılmaz"];
/** Records of every table but the first. */
const FEW = 4;

/** @param rows of the first table */
export function sceneTables(count: number, rows: number) {
  return Array.from({ length: count }, (_, index) => sceneTable(index, count, index === 0 ? rows : FEW));
}

function sceneTable(index: number, count: number, rows: number) {
  const next = (index + 1) % count;
  return {
    id: tableId(index),
    name: `Products ${index}`,
    primaryFieldId: `fldName${digits(index, 10)}`,
    fields: [
      { id: `fldName${digits(index, 10)}`, name: "Name", type: "singleLineText" },
      {
        name: "Status",
        type: "singleSelect",
        options: {
          choices: STATES.map((name, at) => ({ id: `sel${index}x${at}`, name, color: COLORS[at] })),
        },
      },
      { name: "Price", type: "currency", options: { precision: 2, symbol: "$" } },
      { name: "In stock", type: "number", options: { precision: 0 } },
      { name: "Due", type: "date", options: { dateFormat: { name: "iso", format: "YYYY-MM-DD" } } },
      { name: "Owner", type: "singleCollaborator" },
      { name: "Done", type: "checkbox", options: { icon: "check", color: "greenBright" } },
      { name: "Link", type: "url" },
      { name: "E-mail", type: "email" },
      { name: "Notes", type: "multilineText" },
      {
        id: `fldNext${digits(index, 10)}`,
        name: "Next",
        type: "multipleRecordLinks",
        options: { linkedTableId: tableId(next), inverseLinkFieldId: `fldPrev${digits(next, 10)}` },
      },
      {
        id: `fldPrev${digits(index, 10)}`,
        name: "Previous",
        type: "multipleRecordLinks",
        options: {
          linkedTableId: tableId((index + count - 1) % count),
          inverseLinkFieldId: `fldNext${digits((index + count - 1) % count, 10)}`,
        },
      },
    ],
    records: Array.from({ length: rows }, (_, row) => record(index, next, row)),
  };
}

function record(table: number, next: number, row: number) {
  return {
    id: recordId(table, row),
    createdTime: new Date(Date.UTC(2026, 0, 1) + row * 3_600_000).toISOString(),
    fields: {
      Name: `Standing desk, oak, model ${table}-${row}`,
      Status: STATES[row % STATES.length],
      Price: ((row * 7919) % 100_000) / 4,
      "In stock": (row * 31) % 500,
      Due: new Date(Date.UTC(2026, 10, 1) + (row % 60) * 86_400_000).toISOString().slice(0, 10),
      Owner: { id: `usr${row % 5}`, email: `person${row % 5}@example.com`, name: PEOPLE[row % 5] },
      ...(row % 2 === 0 ? { Done: true } : {}),
      Link: `https://example.com/products/${table}/${row}`,
      "E-mail": `sales${row}@example.com`,
      Notes: `First line of product ${row}.\n${"More about it. ".repeat(1 + (row % 12))}`,
      Next: [recordId(next, row % FEW)],
    },
  };
}

function digits(value: number, length: number): string {
  return String(value).padStart(length, "0");
}

function tableId(index: number): string {
  return `tblProd${digits(index, 10)}`;
}

function recordId(table: number, row: number): string {
  return `recP${digits(table, 4)}x${digits(row, 8)}`;
}
