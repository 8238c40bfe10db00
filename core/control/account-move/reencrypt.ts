/** Encrypts the secrets of rows with the key of the other control plane. */
import { BasetideError, isBasetideError } from "../../errors";
import { contextOf, type EncryptedColumn, encryptTwoFactor } from "../setup";
import type { PlaneContext } from "./control-plane";
import type { MovedRow } from "./rows";

/**
 * Returns the encrypted columns of a row as the target stores them.
 *
 * @param columns all encrypted columns of the control plane
 * @throws BasetideError `secret_unreadable` for a value that no key of the source decrypts
 */
export async function reencrypted(
  source: PlaneContext,
  target: PlaneContext,
  table: string,
  { values }: MovedRow,
  columns: EncryptedColumn[],
): Promise<Record<string, string>> {
  if (table === "two_factors") {
    const { id, secret, backup_codes } = values as Record<string, string>;
    const encrypted = await encryptTwoFactor(source.config, target.config, [secret!, backup_codes!]);
    if (!encrypted) throw unreadable(`two_factors ${id}`);
    return { secret: encrypted[0]!, backup_codes: encrypted[1]! };
  }
  const patch: Record<string, string> = {};
  for (const column of columns) {
    const value = values[column.column];
    if (column.table !== table || typeof value !== "string") continue;
    const context = contextOf(column, String(values[column.key]));
    try {
      patch[column.column] = target.secrets.encrypt(source.secrets.decrypt(value, context), context);
    } catch (error) {
      if (!isBasetideError(error, "secret_unreadable")) throw error;
      throw unreadable(context);
    }
  }
  return patch;
}

function unreadable(what: string): BasetideError {
  return new BasetideError(
    "secret_unreadable",
    `No key in SECRET_KEY or SECRET_KEY_PREVIOUS decrypts ${what}. Add the key that encrypted it to SECRET_KEY_PREVIOUS`,
  );
}
