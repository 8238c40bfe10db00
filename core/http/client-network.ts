/**
 * The network that a client's address belongs to, which limits count by: an IPv4 address is one client, and so is an
 * IPv6 /64, the smallest network that a provider assigns. Counting IPv6 addresses one by one would give each customer
 * of a provider 2^64 counters.
 */
import { BlockList, isIP } from "node:net";
import { clientAddress } from "./client-address";

/** Longest text from a proxy's header that is used unchanged. */
const MAX_LENGTH = 64;

/**
 * @param address as `clientAddress` returns it
 * @returns `192.0.2.1`, `2001:db8:0:1::/64`; text that is not an address (a proxy's own notation) is unchanged
 */
export function networkOf(address: string): string {
  const text = address
    .replace(/\s+/g, "")
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/%.*$/, "");
  if (isIP(text) !== 6) return text.slice(0, MAX_LENGTH);
  const groups = groupsOf(text);
  if (isMappedIPv4(groups))
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 255])
      .join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/**
 * Returns a network and those around it, the smallest first: a client that has one of them may have all. For IPv4 the
 * /24 and /16, for IPv6 the /56, /48 and /32.
 *
 * @param network as `networkOf` or `clientNetwork` returns it
 */
export function networksAround(network: string): string[] {
  const [address = "", otherwise] = network.split(" ");
  if (otherwise !== undefined) return [network, ...networksAround(address)];
  if (isIP(address) === 4) {
    const [a, b, c] = address.split(".");
    return [address, `${a}.${b}.${c}.0/24`, `${a}.${b}.0.0/16`];
  }
  if (!address.endsWith("::/64")) return [address];
  const [a, b, c, d] = address
    .slice(0, -"::/64".length)
    .split(":")
    .map((group) => Number.parseInt(group, 16));
  const named = (groups: number[], bits: number) =>
    `${groups.map((group) => group.toString(16)).join(":")}::/${bits}`;
  return [address, named([a!, b!, c!, d! & 0xff00], 56), named([a!, b!, c!], 48), named([a!, b!], 32)];
}

/** Loopback, private and link-local addresses: without a header, many clients may share one. */
const NEARBY = new BlockList();
for (const [network, bits] of [
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["169.254.0.0", 16],
  ["100.64.0.0", 10],
] as const)
  NEARBY.addSubnet(network, bits, "ipv4");
NEARBY.addSubnet("fc00::", 7, "ipv6");
NEARBY.addSubnet("fe80::", 10, "ipv6");

/**
 * Returns the network that limits of a request count by. If no header is configured, a nearby address may be a reverse
 * proxy for all clients, which must not share one client's limits: `otherwise` then distinguishes them.
 *
 * @param header as `clientAddress` takes it
 */
export function clientNetwork(request: Request, header: string | undefined, otherwise: string): string {
  const address = clientAddress(request, header) ?? "unknown";
  const network = networkOf(address);
  const isNearby =
    header === undefined &&
    (isIP(address) === 0 || NEARBY.check(address, isIP(address) === 6 ? "ipv6" : "ipv4"));
  return isNearby ? `${network} ${otherwise}` : network;
}

/** Returns the eight groups of a valid IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = "", tail = ""] = address.split("::");
  const [first, last] = [numbersOf(head), numbersOf(tail)];
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
}

/** The last part may be an IPv4 address, which is two groups. */
function numbersOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    const [a, b, c, d] = group.split(".").map(Number);
    if (d === undefined) return [Number.parseInt(group, 16)];
    return [a! * 256 + b!, c! * 256 + d];
  });
}

function isMappedIPv4(groups: number[]): boolean {
  return groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
}
