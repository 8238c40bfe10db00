/**
 * The address and the token that commands use: from the environment, or stored by `basetide login`.
 *
 * The file is readable by its owner only, and a token is never an argument of a command, which others on the machine
 * could see. A stored token goes only to the address that it was stored with: a variable may come from a folder that
 * somebody else has written.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { type ApiClient, createApiClient } from "./client";
import { CliError } from "./failure";

export const DEFAULT_URL = "http://localhost:3000";

interface Login {
  url: string;
  token: string;
}

function configPath(env = process.env): string {
  const home = env.XDG_CONFIG_HOME || join(homedir(), ".config");
  return join(home, "basetide", "config.json");
}

/** Stores the login; the file exists at no time with the rights of the default. */
export function saveLogin(login: Login): string {
  const path = configPath();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
  return path;
}

/** The console's address, for what needs no login. @throws CliError `usage`, `config_invalid` */
export function currentUrl(): string {
  return checkedUrl(process.env.BASETIDE_URL || storedLogin()?.url || DEFAULT_URL);
}

/** @returns false if there was none */
export function removeLogin(): boolean {
  const path = configPath();
  if (!existsSync(path)) return false;
  rmSync(path);
  return true;
}

/** @throws CliError `not_logged_in`, `config_invalid`, `usage` */
function currentLogin(): Login {
  const stored = storedLogin();
  const { BASETIDE_TOKEN: token, BASETIDE_URL: url } = process.env;
  if (token) return { url: checkedUrl(url || stored?.url || DEFAULT_URL), token };
  if (!stored) {
    const message = "Not logged in. Run `basetide login`, or set BASETIDE_TOKEN and BASETIDE_URL.";
    throw new CliError("not_logged_in", message);
  }
  const own = checkedUrl(stored.url);
  if (!url || checkedUrl(url) === own) return { url: own, token: stored.token };
  throw new CliError(
    "not_logged_in",
    `BASETIDE_URL names ${url}, and you are logged in to ${own}. Unset BASETIDE_URL, run \`basetide login --url ${url}\`, or set BASETIDE_TOKEN, too.`,
  );
}

function storedLogin(): Login | undefined {
  const path = configPath();
  if (!existsSync(path)) return undefined;
  try {
    const { url, token } = JSON.parse(readFileSync(path, "utf8")) as Partial<Login>;
    if (typeof url === "string" && typeof token === "string") return { url, token };
  } catch {
    // The same as a file with other contents.
  }
  throw new CliError("config_invalid", `${path} is not valid. Run \`basetide login\` again.`);
}

/** Returns the address without a slash at its end. A token is sent to no other host in clear text. */
export function checkedUrl(url: string): string {
  const { protocol, hostname, href } = URL.canParse(url) ? new URL(url) : ({} as Partial<URL>);
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname ?? "");
  if (protocol === "https:" || (protocol === "http:" && isLocal)) return href!.replace(/\/+$/, "");
  throw new CliError(
    "usage",
    `${url} is not an address to send a token to. Use https://…, or http://localhost…`,
  );
}

export function clientFor(login: Login): ApiClient {
  return createApiClient({ ...login, userAgent: `basetide-cli/${version}` });
}

export function openClient(): ApiClient {
  return clientFor(currentLogin());
}
