/**
 * This machine's certificate authority for the hosts that the CONNECT listener serves. It is stored in `DATA_DIR`, so
 * that programs have to be told only once to trust it, and it can issue certificates for no other hosts.
 */
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Authority, createAuthority, openAuthority } from "../../../core/http";
import { DAY_MS } from "../../../core/time-units";

const DAYS = 3650;
/** An authority with less validity left is replaced, days: programs that trust it must not fail unexpectedly. */
const SPARE_DAYS = 30;

interface LocalAuthority extends Authority {
  /** The certificate's file, for `NODE_EXTRA_CA_CERTS`, `SSL_CERT_FILE` and similar settings. */
  path: string;
  /** It has just been created: programs that trust another one need this one. */
  isNew: boolean;
}

/**
 * Returns the authority for these hosts; creates one if `folder` has none that can be used.
 *
 * @throws Error if the folder cannot be read or written
 */
export function localAuthority(folder: string, hosts: string[]): LocalAuthority {
  const path = join(folder, "connect-ca.pem");
  const keyPath = join(folder, "connect-ca-key.pem");
  // Checked by the name, which users see in lists of trusted authorities.
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
    // The key must match the certificate.
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
