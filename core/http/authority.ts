/** A certificate authority of this machine, and certificates for servers on it: X.509 v3 (RFC 5280), P-256. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIPv4 } from "node:net";
import { DAY_MS } from "../time-units";

/** From 2050 on, dates include the century (RFC 5280, section 4.1.2.5). */
const CENTURY_FROM_MS = Date.UTC(2050);

/** Certificate and key, PEM. */
export interface Certified {
  certificate: string;
  key: string;
}

export interface Authority extends Certified {
  /**
   * Issues a certificate for a server with these DNS names and IPv4 addresses; valid for a day unless `days` is given.
   */
  issue(names: string[], days?: number): Certified;
}

interface AuthorityOptions {
  /** Days of validity; one unless given. */
  days?: number;
  /**
   * The only hosts, including their subdomains, that it can issue certificates for, even with a stolen key; any host
   * unless given.
   */
  hosts?: string[];
}

export function createAuthority(name: string, { days = 1, hosts }: AuthorityOptions = {}): Authority {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extensions = [
    // An authority that cannot create further authorities.
    extension("551d13", sequence(der(0x01, Buffer.from([0xff])), der(0x02, Buffer.from([0]))), true),
    keyUsage(KEY_CERT_SIGN),
    extension("551d0e", der(0x04, keyIdOf(privateKey))),
    ...(hosts ? [extension("551d1e", onlyFor(hosts), true)] : []),
  ];
  const issuer = { name, key: privateKey };
  const certificate = certificateOf(issuer, issuer, days, extensions);
  return openAuthority({ certificate, key: pemOf(privateKey) });
}

/** Opens an existing authority. @throws TypeError or Error if certificate or key are not valid or do not match */
export function openAuthority({ certificate, key }: Certified): Authority {
  const name = /^CN=(.*)$/m.exec(new X509Certificate(certificate).subject)![1]!;
  const issuer = { name, key: createPrivateKey(key) };
  return {
    certificate,
    key,
    issue(names, days = 1) {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const others = names.map((one) =>
        isIPv4(one) ? der(0x87, Buffer.from(one.split(".").map(Number))) : der(0x82, Buffer.from(one)),
      );
      const extensions = [
        keyUsage(DIGITAL_SIGNATURE),
        // For servers.
        extension("551d25", sequence(oid("2b06010505070301"))),
        extension("551d23", sequence(der(0x80, keyIdOf(issuer.key)))),
        extension("551d11", sequence(...others)),
      ];
      const subject = { name: names[0]!, key: privateKey };
      return { certificate: certificateOf(subject, issuer, days, extensions), key: pemOf(privateKey) };
    },
  };
}

interface Party {
  name: string;
  key: KeyObject;
}

function certificateOf(subject: Party, issuer: Party, days: number, extensions: Buffer[]): string {
  const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    nameOf(issuer.name),
    // A day ago: the other side's clock may be behind.
    sequence(time(Date.now() - DAY_MS), time(Date.now() + days * DAY_MS)),
    nameOf(subject.name),
    publicOf(subject.key),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", toBeSigned, issuer.key);
  const whole = sequence(toBeSigned, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function publicOf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: "spki", format: "der" });
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Identifies in a certificate the key that signed it. */
function keyIdOf(key: KeyObject): Buffer {
  return createHash("sha256").update(publicOf(key)).digest().subarray(0, 20);
}

const DIGITAL_SIGNATURE = [7, 0x80];
const KEY_CERT_SIGN = [2, 0x04];

/** @param bits the number of unused bits, then the bits */
function keyUsage(bits: number[]): Buffer {
  return extension("551d0f", der(0x03, Buffer.from(bits)), true);
}

/** Name constraints: these DNS names, and no addresses. */
function onlyFor(hosts: string[]): Buffer {
  const permitted = hosts.map((host) => sequence(der(0x82, Buffer.from(host))));
  const excluded = [8, 32].map((length) => sequence(der(0x87, Buffer.alloc(length))));
  return sequence(der(0xa0, ...permitted), der(0xa1, ...excluded));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...critical, der(0x04, value));
}

/** A name with one part: CN. */
function nameOf(name: string): Buffer {
  return sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(name)))));
}

function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/[-:T]|\.\d+/g, "");
  return at < CENTURY_FROM_MS ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

/** @param hex the encoded identifier */
function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}

function sequence(...parts: Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

/** Tag, length, value. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}
