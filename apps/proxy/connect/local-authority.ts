/**
 * The authority that vouches, on this machine, for the hosts that the CONNECT listener answers for. It is kept in
 * `DATA_DIR`, so that programs are told to trust it once, and can vouch for no host but these.
 */
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Authority, createAuthority, openAuthority } from "../../../core/http";

const DAYS = 3650;
/** One that ends sooner is replaced, days: the programs that trust it are not to be cut off by surprise. */
const SPARE_DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1000;

export interface LocalAuthority extends Authority {
  /** The certificate's file, for `NODE_EXTRA_CA_CERTS`, `SSL_CERT_FILE` and their like. */
  path: string;
  /** It was made just now: programs that trust another have to be given this one. */
  isNew: boolean;
}

/**
 * The authority for these hosts, made where there is none in `folder` that serves.
 *
 * @throws Error where the folder cannot be read or written
 */
export function localAuthority(folder: string, hosts: string[]): LocalAuthority {
  const path = join(folder, "connect-ca.pem");
  const keyPath = join(folder, "connect-ca-key.pem");
  // By the name, which people see in lists of what they trust.
  const name = `Basetide for ${hosts.join(" and ")}`;
  const kept = existsSync(path) && existsSync(keyPath) ? openKept(path, keyPath) : undefined;
  if (kept && isFor(kept, name)) return { ...kept, path, isNew: false };
  const made = createAuthority(name, { days: DAYS, hosts });
  mkdirSync(folder, { recursive: true });
  // No other user of the machine may sign with it.
  writeFileSync(keyPath, made.key, { mode: 0o600 });
  writeFileSync(path, made.certificate);
  return { ...made, path, isNew: true };
}

function openKept(path: string, keyPath: string): Authority | undefined {
  try {
    const certificate = readFileSync(path, "utf8");
    const authority = openAuthority({ certificate, key: readFileSync(keyPath, "utf8") });
    // A key of another certificate's vouches for nothing.
    const { certificate: issued } = authority.issue(["localhost"]);
    const isOne = new X509Certificate(issued).verify(new X509Certificate(certificate).publicKey);
    return isOne ? authority : undefined;
  } catch {
    return undefined;
  }
}

function isFor({ certificate }: Authority, name: string): boolean {
  const { subject, validTo } = new X509Certificate(certificate);
  return subject === `CN=${name}` && Date.parse(validTo) - Date.now() > SPARE_DAYS * DAY_MS;
}
