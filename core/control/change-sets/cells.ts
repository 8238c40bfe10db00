/** Cells of operations, and errors that may quote them, encrypted at rest. */
import type { SecretBox } from "../../secrets";
import type { CellValues } from "./operations";

/** The column of `change_items`, without its prefix. */
type CellColumn = "cells" | "expected" | "before" | "after";

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

/** @param id of the item */
export function encryptError(secrets: SecretBox, error: string, id: string): string | null {
  return error === "" ? null : secrets.encrypt(error, `change_items.error:${id}`);
}

/** @throws BasetideError `secret_unreadable` */
export function openError(secrets: SecretBox, encrypted: string | null, id: string): string {
  return encrypted === null ? "" : secrets.decrypt(encrypted, `change_items.error:${id}`);
}
