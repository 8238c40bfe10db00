/** Passwords: their rules and their hashes, in one place for the console, the command line and the demo. */
import { BasetideError } from "../errors";

export const MIN_PASSWORD_LENGTH = 8;
/** argon2 reads it all: without a limit, a long password is a way to keep the process busy. */
export const MAX_PASSWORD_LENGTH = 1000;

/** @throws BasetideError `invalid_request` */
export function checkPassword(password: string): void {
  if (password.length >= MIN_PASSWORD_LENGTH && password.length <= MAX_PASSWORD_LENGTH) return;
  throw new BasetideError(
    "invalid_request",
    `A password has ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`,
  );
}

/** argon2id, in the PHC string format. */
export function hashPassword(password: string): Promise<string> {
  return Bun.password.hash(password, "argon2id");
}

export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  return Bun.password.verify(password, hash);
}
