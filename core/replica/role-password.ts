/**
 * Sets passwords of roles in SQL as SCRAM verifiers, which are useless to a reader of the server's log.
 *
 * Some servers take no verifier, because they pass passwords on to their own proxy (Neon, Lakebase) or check them
 * (credcheck). They get the password itself: over TLS only, and with statement logging off as far as we may.
 */

import { pbkdf2Sync, randomBytes } from "node:crypto";
import postgres, { type Sql, type TransactionSql } from "postgres";
import { BasetideError } from "../errors";
import { SCRAM_ITERATIONS, SCRAM_KEY_BYTES, SCRAM_MECHANISM, scramKeys } from "../scram";

/** SASLprep changes nothing in such a password. */
const ASCII = /^[ -~]+$/;
/**
 * SQLSTATEs and classes of errors that are not about the password: no connection, a transaction to repeat, no such
 * role, too many connections, no privilege, an invalid name, no space.
 */
const OTHER_REASONS = /^(08|40|53|55|57|58)|^(42501|42601|42704|42710)$/;
/** Servers that take no verifier refuse with it, but Postgres also reports it when two sessions change one role. */
const INTERNAL_ERROR = "XX000";

/** Settings that keep a statement out of the server's logs; most servers let only some roles change them. */
const UNLOGGED: [string, string][] = [
  ["log_statement", "none"],
  ["log_min_duration_statement", "-1"],
  ["log_min_duration_sample", "-1"],
  ["log_transaction_sample_rate", "0"],
  ["log_min_error_statement", "panic"],
  ["pg_stat_statements.track_utility", "off"],
  ["pgaudit.log", "none"],
];

/**
 * Runs `statement`, which sets a role's password.
 *
 * @param statement SQL text, given the text between the quotes of `password '…'`
 * @throws BasetideError `config_invalid` if the server takes no verifier and the connection is not encrypted
 */
export async function runWithPassword(
  admin: Sql,
  password: string,
  statement: (secret: string) => string,
): Promise<void> {
  if (!ASCII.test(password)) return void (await admin.unsafe(statement(quoted(password))));
  const text = statement(scramVerifier(password));
  let refusal = await refusalOf(admin, text);
  if (refusal?.code === INTERNAL_ERROR) refusal = await refusalOf(admin, text);
  if (refusal === undefined) return;
  if (!isEncrypted(admin)) {
    throw new BasetideError(
      "config_invalid",
      `The server accepts passwords only in clear text (${refusal.message}), which Basetide sends only over TLS. Add sslmode=verify-full or sslmode=require to the admin URL`,
      { cause: refusal },
    );
  }
  await admin.begin(async (tx) => {
    await tx`set local password_encryption = 'scram-sha-256'`;
    await keepFromLogs(tx);
    await tx.unsafe(statement(quoted(password)));
  });
}

/** How a server takes passwords. `refused`: in clear text, and the connection is not encrypted. */
export type PasswordHandling = "verifier" | "clear_text" | "refused";

/** Leaves nothing behind. @throws any error that prevents an answer */
export async function passwordHandling(admin: Sql): Promise<PasswordHandling> {
  const role = `bt_probe_${crypto.randomUUID().slice(0, 8)}`;
  const text = `create role ${role} password '${scramVerifier(role)}'; drop role ${role}`;
  if ((await refusalOf(admin, text)) === undefined) return "verifier";
  return isEncrypted(admin) ? "clear_text" : "refused";
}

/** Runs the statements, all or none. @returns why the server takes no verifier; undefined if it does */
function refusalOf(admin: Sql, text: string): Promise<(Error & { code: string }) | undefined> {
  return admin.unsafe(text).then(
    () => undefined,
    (error: Error & { code: string }) => {
      const isOfStatement = error instanceof postgres.PostgresError && error.severity === "ERROR";
      if (!isOfStatement || OTHER_REASONS.test(error.code)) throw error;
      return error;
    },
  );
}

async function keepFromLogs(tx: TransactionSql): Promise<void> {
  for (const [name, value] of UNLOGGED) {
    await tx
      .savepoint(
        (part) => part`select set_config(${name}, ${value}, true)
        where current_setting(${name}, true) is not null`,
      )
      .catch(() => {});
  }
}

/** Judges by the driver's options: with them it accepts no connection without TLS. */
function isEncrypted({ options }: Sql): boolean {
  const ssl: unknown = options.ssl;
  return Boolean(ssl) && ssl !== "prefer" && ssl !== "allow";
}

function quoted(password: string): string {
  return password.replaceAll("'", "''");
}

const SALT_BYTES = 16;

/**
 * Returns a password in the form that Postgres stores (RFC 5803), for `… password '…'`. The text of a statement may end
 * up in the server's log, its statistics or an error, where a verifier opens nothing.
 *
 * @param password printable ASCII, which SASLprep leaves unchanged
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, SCRAM_ITERATIONS, SCRAM_KEY_BYTES, "sha256");
  const { storedKey, serverKey } = scramKeys(salted);
  const keys = `${storedKey.toString("base64")}:${serverKey.toString("base64")}`;
  return `${SCRAM_MECHANISM}$${SCRAM_ITERATIONS}:${salt.toString("base64")}$${keys}`;
}
