/** Certificates as checked by OpenSSL in its strictest mode, which newer Pythons use. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test as plain } from "vitest";
import { createAuthority, openAuthority } from "../../core/http";

const test = plain.skipIf(!Bun.which("openssl"));
const HOSTS = ["api.airtable.com", "content.airtable.com"];

/** OpenSSL's verdict on a server's certificate. */
function verify(authority: string, certificate: string, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), "authority-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "ca.pem"), authority);
  writeFileSync(join(folder, "server.pem"), certificate);
  const options = ["-x509_strict", "-purpose", "sslserver", "-verify_hostname", name];
  const words = ["openssl", "verify", ...options, "-CAfile", "ca.pem", "server.pem"];
  const { stdout, stderr } = Bun.spawnSync(words, { cwd: folder });
  return `${stdout}${stderr}`;
}

test.for([HOSTS, undefined])(
  "a certificate is valid for its names, and for no other (hosts: %j)",
  (hosts) => {
    const authority = createAuthority("Basetide", { days: 3650, hosts });
    const { certificate } = authority.issue(HOSTS, 800);
    for (const name of HOSTS)
      expect(verify(authority.certificate, certificate, name)).toBe("server.pem: OK\n");
    expect(verify(authority.certificate, certificate, "elsewhere.example")).toMatch(/hostname mismatch/i);
  },
);

test("an authority that is loaded again is the same", () => {
  const made = createAuthority("Basetide", { days: 30_000 });
  const opened = openAuthority({ certificate: made.certificate, key: made.key });
  expect(verify(made.certificate, opened.issue(HOSTS).certificate, HOSTS[0]!)).toBe("server.pem: OK\n");
});

test.for(["elsewhere.example", "airtable.com", "127.0.0.1"])(
  "an authority for some hosts is trusted for no other: %s",
  (name) => {
    const authority = createAuthority("Basetide", { hosts: HOSTS });
    const { certificate } = authority.issue([name]);
    expect(verify(authority.certificate, certificate, name)).toMatch(/subtree/);
  },
);

test("a server's certificate cannot sign another one", () => {
  const authority = createAuthority("Basetide");
  const server = authority.issue(HOSTS);
  const other = openAuthority(server).issue(["elsewhere.example"]);
  expect(verify(authority.certificate + server.certificate, other.certificate, "elsewhere.example")).toMatch(
    /error/,
  );
});
