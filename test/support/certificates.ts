/** Certificates for tests of TLS: an authority of one's own, and servers that it vouches for. X.509 v3, P-256. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIPv4 } from "node:net";

const DAY_MS = 24 * 60 * 60 * 1000;

export interface Authority {
  /** PEM. */
  certificate: string;
  /** A certificate for a server that is called so: DNS names and IPv4 addresses. */
  issue(names: string[]): { certificate: string; key: string };
}

export function createAuthority(name: string): Authority {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const isAuthority = extension("551d13", sequence(der(0x01, Buffer.from([0xff]))), true);
  return {
    certificate: certificateOf({ name, key: keys.publicKey }, { name, key: keys.privateKey }, [isAuthority]),
    issue(names) {
      const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const others = names.map((one) =>
        isIPv4(one) ? der(0x87, Buffer.from(one.split(".").map(Number))) : der(0x82, Buffer.from(one)),
      );
      const certificate = certificateOf(
        { name: names[0]!, key: own.publicKey },
        { name, key: keys.privateKey },
        [extension("551d11", sequence(...others))],
      );
      return { certificate, key: own.privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
    },
  };
}

function certificateOf(
  subject: { name: string; key: KeyObject },
  issuer: { name: string; key: KeyObject },
  extensions: Buffer[],
): string {
  const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    nameOf(issuer.name),
    sequence(time(Date.now() - DAY_MS), time(Date.now() + DAY_MS)),
    nameOf(subject.name),
    subject.key.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", toBeSigned, issuer.key);
  const whole = sequence(toBeSigned, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(oid(id), ...critical, der(0x04, value));
}

/** A name of one part: CN. */
function nameOf(name: string): Buffer {
  return sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(name)))));
}

function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/[-:T]|\.\d+/g, "");
  return der(0x18, Buffer.from(digits));
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
