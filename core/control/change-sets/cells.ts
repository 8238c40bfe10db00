/** Cells of operations, encrypted at rest. */
import type { SecretBox } from "../../secrets";
import type { CellValues } from "./operations";

/** The column of `change_items`, without its prefix. */
export type CellColumn = "cells" | "expected" | "before";

/** @param id of the item */
export function encryptCells(secrets: SecretBox, cells: CellValues, column: CellColumn, id: string): string {
  return secrets.encrypt(JSON.stringify(cells), `change_items.${column}:${id}`);
}

/** @throws BasetideError `secret_unreadable` */
export function openCells(
  secrets: SecretBox,
  encrypted: string | null,
  column: CellColumn,
  id: string,
): CellValues | undefined {
  if (encrypted === null) return undefined;
  return JSON.parse(secrets.decrypt(encrypted, `change_items.${column}:${id}`));
}
