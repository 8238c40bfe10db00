/**
 * Decides which addresses a customer's database may have. A customer writes the URL, and we connect to it: it must not
 * reach this machine, the network behind it or a cloud's metadata service, unless the operator has allowed it.
 *
 * The URL is checked before any other use, and the gateway (`core/external`) checks the actual address again when it
 * connects: a name that resolves to another address by then is refused.
 */
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import type { Config } from "../config";
import { BasetideError } from "../errors";

export type AddressKind = "public" | "loopback" | "private" | "forbidden";

/** Ranges by kind; an address in none of them is public. The first matching range counts. */
const RANGES: [Exclude<AddressKind, "public">, string[]][] = [
  // Link-local contains the metadata services, and so do single addresses of Alibaba, Azure and AWS; multicast,
  // documentation and reserved ranges contain no databases.
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
      "168.63.129.16/32",
      "192.88.99.0/24",
      "fe80::/10",
      "ff00::/8",
      "fd00:ec2::/32",
      "2001:db8::/32",
      "3fff::/20",
      "100::/64",
      "5f00::/16",
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

/**
 * @param address an IP address; IPv4 inside IPv6 (mapped, 6to4, NAT64, Teredo and the like) counts as the IPv4 address
 */
export function kindOfAddress(address: string): AddressKind {
  const inside = ipv4Inside(address);
  const kinds = [address, ...(inside === undefined ? [] : [inside])].map(kindInLists);
  return STRICTEST_FIRST.find((kind) => kinds.includes(kind)) ?? "public";
}

const STRICTEST_FIRST: AddressKind[] = ["forbidden", "private", "loopback"];

function kindInLists(address: string): AddressKind {
  const family = address.includes(":") ? "ipv6" : "ipv4";
  return lists.find(({ list }) => list.check(address, family))?.kind ?? "public";
}

/**
 * Resolves `host`, and refuses it if any of its addresses is not allowed.
 *
 * @returns the kind of its addresses: `public` only if all are
 * @throws BasetideError `destination_invalid`
 */
export async function checkHost(
  host: string,
  allowed: Config["privateDestinations"],
): Promise<Exclude<AddressKind, "forbidden">> {
  const addresses = isIP(host) ? [host] : await lookUp(host);
  const kinds = addresses.map(kindOfAddress);
  for (const kind of kinds) {
    const reason = whyRefused(kind, allowed);
    if (reason !== undefined) throw new BasetideError("destination_invalid", `${host} ${reason}`);
  }
  return leastPublic(kinds);
}

/** Returns the kind of a host that the operator has chosen; an unknown name counts as public. */
export async function kindOfHost(host: string): Promise<Exclude<AddressKind, "forbidden">> {
  const addresses = isIP(host) ? [host] : await lookUp(host).catch(() => []);
  return leastPublic(addresses.map(kindOfAddress));
}

function leastPublic(kinds: AddressKind[]): Exclude<AddressKind, "forbidden"> {
  return kinds.includes("loopback") ? "loopback" : kinds.includes("private") ? "private" : "public";
}

const GIVE_ANOTHER = "use an address that can be reached from the internet";

/**
 * Returns why connections to an address of this kind are refused, as a clause that follows the host's name, with the
 * remedy; undefined if they are allowed.
 */
export function whyRefused(kind: AddressKind, allowed: Config["privateDestinations"]): string | undefined {
  if (kind === "forbidden") return `is not a valid address for a database: ${GIVE_ANOTHER}`;
  if (kind === "private" && allowed !== "yes")
    return `is in a private network: ${GIVE_ANOTHER}, or ask the operator to set ALLOW_PRIVATE_DESTINATIONS=yes`;
  if (kind === "loopback" && allowed === "no")
    return `is Basetide's own machine: ${GIVE_ANOTHER}, or ask the operator to set ALLOW_PRIVATE_DESTINATIONS=loopback`;
  return undefined;
}

async function lookUp(host: string): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (cause) {
    throw new BasetideError(
      "destination_invalid",
      `The database at ${host} cannot be reached: the host name does not exist`,
      {
        cause,
      },
    );
  }
}

/** Returns the IPv4 address inside `::ffff:127.0.0.1` and similar forms, in any spelling. */
function ipv4Inside(address: string): string | undefined {
  const words = ipv6Words(address);
  if (!words) return undefined;
  const dotted = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join(".");
  const isZero = (count: number) => words.slice(0, count).every((word) => word === 0);
  const last = dotted(words[6]!, words[7]!);
  // Mapped, and translated (RFC 2765).
  if (isZero(5) && words[5] === 0xffff) return last;
  if (isZero(4) && words[4] === 0xffff && words[5] === 0) return last;
  // IPv4-compatible, except `::` and `::1`, which are addresses of their own.
  if (isZero(6) && (words[6] !== 0 || words[7]! > 1)) return last;
  // NAT64: the well-known prefix and networks' own.
  if (words[0] === 0x64 && words[1] === 0xff9b) return last;
  // 6to4.
  if (words[0] === 0x2002) return dotted(words[1]!, words[2]!);
  // Teredo: the client's address, inverted; the server's would be in words 2 and 3.
  if (words[0] === 0x2001 && words[1] === 0) return dotted(~words[6]! & 0xffff, ~words[7]! & 0xffff);
  // ISATAP.
  if ((words[4]! & 0xfdff) === 0 && words[5] === 0x5efe) return last;
  return undefined;
}

/** Returns the eight words of an IPv6 address; undefined for an IPv4 one. */
function ipv6Words(address: string): number[] | undefined {
  if (isIP(address) !== 6) return undefined;
  // The URL parser accepts every spelling and normalizes it: lower case, `::` once, no dots.
  const host = new URL(`http://[${address.split("%")[0]}]`).hostname.slice(1, -1);
  const [head = "", tail] = host.split("::");
  const parse = (part: string) =>
    part === "" ? [] : part.split(":").map((word) => Number.parseInt(word, 16));
  const [front, back] = [parse(head), parse(tail ?? "")];
  return tail === undefined ? front : [...front, ...Array(8 - front.length - back.length).fill(0), ...back];
}
