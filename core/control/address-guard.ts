/**
 * Which addresses a customer's database may have. A URL is theirs to write, and we are the ones who connect: it must not
 * reach this machine, the network behind it or a cloud's metadata service, unless the operator has allowed it.
 *
 * A name is looked up here and again when it is connected to. Who changes its record in between reaches a port that
 * must speak Postgres' protocol and take their password; our own servers are told by their identifiers besides.
 */
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import type { Config } from "../config";
import { BasetideError } from "../errors";

export type AddressKind = "public" | "loopback" | "private" | "forbidden";

/** Ranges by kind; what is in none is public. The first that holds an address counts. */
const RANGES: [Exclude<AddressKind, "public">, string[]][] = [
  // Link-local holds the metadata services; multicast, documentation and reserved ranges hold nobody's database.
  [
    "forbidden",
    [
      "169.254.0.0/16",
      "224.0.0.0/4",
      "240.0.0.0/4",
      "192.0.0.0/24",
      "192.0.2.0/24",
      "198.51.100.0/24",
    ].concat([
      "203.0.113.0/24",
      "100.100.100.200/32",
      "fe80::/10",
      "ff00::/8",
      "fd00:ec2::/32",
      "2001:db8::/32",
    ]),
  ],
  ["loopback", ["127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128"]],
  ["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"]],
  ["private", ["fc00::/7", "fec0::/10"]],
];

const lists = RANGES.map(([kind, ranges]) => {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, bits] = range.split("/");
    list.addSubnet(address!, Number(bits), address!.includes(":") ? "ipv6" : "ipv4");
  }
  return { kind, list };
});

/** @param address an IP address; IPv4 inside IPv6 (mapped, 6to4, NAT64) counts as what it leads to */
export function kindOfAddress(address: string): AddressKind {
  const plain = ipv4Inside(address) ?? address;
  const family = plain.includes(":") ? "ipv6" : "ipv4";
  return lists.find(({ list }) => list.check(plain, family))?.kind ?? "public";
}

/**
 * Looks `host` up, and refuses it when any of its addresses is not allowed.
 *
 * @returns the kind of its addresses: `public` only when all are
 * @throws BasetideError `destination_invalid`
 */
export async function checkHost(
  host: string,
  allowed: Config["privateDestinations"],
): Promise<Exclude<AddressKind, "forbidden">> {
  const addresses = isIP(host) ? [host] : await lookUp(host);
  const kinds = new Set(addresses.map(kindOfAddress));
  if (kinds.has("forbidden")) throw refused(host, "is no place for a database");
  if (kinds.has("private") && allowed !== "yes") throw refused(host, "is in a private network");
  if (kinds.has("loopback") && allowed === "no") throw refused(host, "is the service's own machine");
  return kinds.has("loopback") ? "loopback" : kinds.has("private") ? "private" : "public";
}

function refused(host: string, why: string): BasetideError {
  return new BasetideError(
    "destination_invalid",
    `${host} ${why}: give an address that can be reached from the internet, or ask the operator to allow it`,
  );
}

async function lookUp(host: string): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (cause) {
    throw new BasetideError(
      "destination_invalid",
      `The database at ${host} cannot be reached: nobody knows that name`,
      {
        cause,
      },
    );
  }
}

/** `::ffff:127.0.0.1` and its kin, in any spelling: the IPv4 address that it stands for. */
function ipv4Inside(address: string): string | undefined {
  const words = ipv6Words(address);
  if (!words) return undefined;
  const dotted = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join(".");
  const isZero = (count: number) => words.slice(0, count).every((word) => word === 0);
  if (isZero(5) && words[5] === 0xffff) return dotted(words[6]!, words[7]!);
  if (words[0] === 0x64 && words[1] === 0xff9b) return dotted(words[6]!, words[7]!);
  if (words[0] === 0x2002) return dotted(words[1]!, words[2]!);
  return undefined;
}

/** The eight words of an IPv6 address; undefined for an IPv4 one. */
function ipv6Words(address: string): number[] | undefined {
  if (isIP(address) !== 6) return undefined;
  // The URL parser knows every spelling, and writes one: lower case, `::` once, no dots.
  const host = new URL(`http://[${address.split("%")[0]}]`).hostname.slice(1, -1);
  const [head = "", tail] = host.split("::");
  const parse = (part: string) =>
    part === "" ? [] : part.split(":").map((word) => Number.parseInt(word, 16));
  const [front, back] = [parse(head), parse(tail ?? "")];
  return tail === undefined ? front : [...front, ...Array(8 - front.length - back.length).fill(0), ...back];
}
