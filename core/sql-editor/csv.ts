/** CSV as RFC 4180 describes it; spreadsheets and Postgres' COPY read it. */

/** A null is nothing, an empty text is `""`: COPY tells them apart. */
export function csvLine(cells: readonly (string | null)[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: string | null): string {
  if (cell === null) return "";
  return cell === "" || /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
