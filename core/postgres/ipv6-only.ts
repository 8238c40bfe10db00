/**
 * Detects that a host has only IPv6 addresses and this machine has no IPv6: the connection error alone does not tell.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";

/** Name resolution and network interfaces of this machine. */
interface Network {
  addressesOf(host: string): Promise<string[]>;
  hasIpv6(): boolean;
}

const SUPABASE = /\.supabase\.co$/;

const thisMachine: Network = {
  addressesOf: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  // Without an address beyond link-local, no packet leaves the local link.
  hasIpv6: () =>
    Object.values(networkInterfaces())
      .flat()
      .some((one) => one?.family === "IPv6" && !one.internal && !/^fe[89ab]/i.test(one.address)),
};

/** @returns a sentence with the remedy; undefined if the host is unreachable for another reason */
export async function ipv6OnlyProblem(host: string, network = thisMachine): Promise<string | undefined> {
  if (network.hasIpv6()) return undefined;
  const addresses = isIP(host) ? [host] : await network.addressesOf(host).catch(() => []);
  const isFar = (address: string) => isIP(address) === 6 && address !== "::1" && !/^::ffff:/i.test(address);
  if (addresses.length === 0 || !addresses.every(isFar)) return undefined;
  const remedy = SUPABASE.test(host)
    ? "Use the project's session pooler instead (`Connect`, `Session pooler`: port 5432 of a host under pooler.supabase.com)"
    : "Use an address with IPv4 (often the provider's pooler, in session mode), or configure IPv6 on this machine";
  return `${host} has only IPv6 addresses, and this machine has no route to IPv6. ${remedy}.`;
}
