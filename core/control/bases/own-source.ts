/**
 * The source as a base reads it: with its own key, and without what its selection leaves out. Everything that reads
 * records of a connected base connects here.
 */
import type { Context } from "../../context";
import { BasetideError, notFound } from "../../errors";
import {
  createCellHash,
  type Platform,
  type Selecting,
  type SourceConnection,
  type SourceSelection,
  selectedSource,
} from "../../source";
import { decryptApiKey } from "./bases";

/** What a base stores about reading its source. */
interface SourceAccess {
  id: string;
  encryptedApiKey: string;
  /** Null: everything is copied. */
  selection: SourceSelection | null;
  /** For the hashes of its cells. It never changes: hashes would no longer join. Null until a selection is made. */
  encryptedHashKey: string | null;
}

/** Connects with what was read already. @throws BasetideError `secret_unreadable` */
export function connectOwn(
  ctx: Pick<Context, "secrets">,
  platform: Platform,
  base: SourceAccess,
): SourceConnection {
  return selectedSource(platform.connect(decryptApiKey(ctx, base)), selectingOf(ctx, base));
}

/** Returns what `selectedSource` needs; undefined if everything is copied. @throws BasetideError `secret_unreadable` */
export function selectingOf(
  ctx: Pick<Context, "secrets">,
  { id, selection, encryptedHashKey }: Omit<SourceAccess, "encryptedApiKey">,
): Selecting | undefined {
  if (!selection) return undefined;
  // Without its key, a cell would have to be shown or lost.
  if (encryptedHashKey === null) throw new BasetideError("secret_unreadable");
  return { selection, hash: createCellHash(ctx.secrets.decrypt(encryptedHashKey, `bases.hash_key:${id}`)) };
}

/** Reads what the base stores. @throws BasetideError `not_found` */
export async function sourceAccess({ db }: Pick<Context, "db">, baseId: string): Promise<SourceAccess> {
  const [row] = await db<SourceAccess[]>`
    select id, encrypted_api_key as "encryptedApiKey", selection, encrypted_hash_key as "encryptedHashKey"
    from bases where id = ${baseId}`;
  if (row) return row;
  throw notFound(`There is no base ${baseId}`);
}
