/** Reads the form of a new API token. */
import { scopes, type TokenScope } from "../../core/control/accounts";
import { formText } from "./page-kit";

const MAX_NAME_LENGTH = 100;

/** Days, as the form's choices. */
const expiries = ["30", "90", "365", "never"] as const;

export interface TokenForm {
  name: string;
  scopes: TokenScope[];
  expires: (typeof expiries)[number];
}

interface ReadForm {
  form: TokenForm;
  errors: { name?: string; scopes?: string };
  /** Undefined: it does not expire. */
  expiresInDays: number | undefined;
}

/** An unknown or missing expiry is read as 90 days: only the choice itself creates a token that never expires. */
export function readTokenForm(body: unknown): ReadForm {
  const name = formText(body, "name");
  const chosen = scopes.filter((scope) => formText(body, scope) === "on");
  const expires = expiries.find((one) => one === formText(body, "expires")) ?? "90";
  const errors = {
    ...(name === "" || name.length > MAX_NAME_LENGTH
      ? { name: `The name must have 1 to ${MAX_NAME_LENGTH} characters.` }
      : {}),
    ...(chosen.length === 0 ? { scopes: "Choose at least one scope." } : {}),
  };
  const form = { name, scopes: chosen, expires };
  return { form, errors, expiresInDays: expires === "never" ? undefined : Number(expires) };
}
