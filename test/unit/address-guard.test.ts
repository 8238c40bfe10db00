import fc from "fast-check";
import { expect, test } from "vitest";
import { type AddressKind, checkHost, kindOfAddress } from "../../core/net";

test.for([
  ["8.8.8.8", "public"],
  ["2606:4700::1111", "public"],
  ["127.0.0.1", "loopback"],
  ["127.255.255.255", "loopback"],
  ["0.0.0.0", "loopback"],
  ["::1", "loopback"],
  ["::", "loopback"],
  ["10.1.2.3", "private"],
  ["172.31.255.255", "private"],
  ["172.32.0.0", "public"],
  ["192.168.0.1", "private"],
  ["100.64.0.1", "private"],
  ["fd12::1", "private"],
  ["169.254.169.254", "forbidden"],
  ["100.100.100.200", "forbidden"],
  ["fd00:ec2::254", "forbidden"],
  ["fe80::1%eth0", "forbidden"],
  ["224.0.0.1", "forbidden"],
  ["255.255.255.255", "forbidden"],
  ["2002:a9fe:a9fe::", "forbidden"],
  ["64:ff9b::a00:1", "private"],
  ["64:ff9b:1::a00:1", "private"],
  ["::127.0.0.1", "loopback"],
  ["::10.0.0.1", "private"],
  ["::ffff:0:10.0.0.1", "private"],
  ["2001:0:4136:e378:8000:63bf:80ff:fffe", "loopback"],
  ["fe80::5efe:10.0.0.1", "forbidden"],
  ["2606:4700::5efe:10.0.0.1", "private"],
  ["168.63.129.16", "forbidden"],
  ["::ffff:168.63.129.16", "forbidden"],
] as [string, AddressKind][])("%s is %s", ([address, kind]) => {
  expect(kindOfAddress(address)).toBe(kind);
});

test("an IPv4 address inside an IPv6 one is treated as that address, in any notation", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a, b, c, d] = address.split(".").map(Number) as [number, number, number, number];
      const high = ((a << 8) | b).toString(16);
      const low = ((c << 8) | d).toString(16);
      for (const mapped of [`::ffff:${address}`, `::FFFF:${high}:${low}`, `0:0:0:0:0:ffff:${high}:${low}`]) {
        expect([mapped, kindOfAddress(mapped)]).toEqual([mapped, kindOfAddress(address)]);
      }
    }),
  );
});

test("no IPv6 notation of an address of this machine or a private network is public", () => {
  const inside = fc.oneof(
    fc.tuple(fc.constantFrom("127", "10", "0"), fc.nat(255), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant("192.168"), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant("169.254"), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant("172"), fc.integer({ min: 16, max: 31 }), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant("168.63.129.16")),
  );
  fc.assert(
    fc.property(inside, fc.array(fc.nat(0xffff), { minLength: 4, maxLength: 4 }), (parts, free) => {
      const address = parts.join(".");
      const [a, b, c, d] = address.split(".").map(Number) as [number, number, number, number];
      const [high, low] = [(a << 8) | b, (c << 8) | d];
      const hex = (...words: number[]) => words.map((word) => word.toString(16)).join(":");
      const any = hex(...free);
      for (const written of [
        `::${address}`,
        `::${hex(high, low)}`,
        `::ffff:${address}`,
        `0:0:0:0:0:FFFF:${hex(high, low)}`,
        `::ffff:0:${hex(high, low)}`,
        `64:ff9b::${address}`,
        `64:ff9b:1:${hex(...free.slice(0, 3))}:${hex(high, low)}`,
        `2002:${hex(high, low)}:${any}:1`,
        `2001:0:${any}:${hex(~high & 0xffff, ~low & 0xffff)}`,
        `2606:4700:${hex(...free.slice(0, 2))}:0:5efe:${address}`,
      ]) {
        expect([written, kindOfAddress(written)]).not.toEqual([written, "public"]);
      }
    }),
  );
});

test("the allowlist covers this machine and private networks, and never link-local addresses", async () => {
  const answers = async (host: string) =>
    Promise.all(
      (["no", "loopback", "yes"] as const).map((allowed) => checkHost(host, allowed).catch(() => "refused")),
    );
  expect(await answers("localhost")).toEqual(["refused", "loopback", "loopback"]);
  expect(await answers("10.0.0.1")).toEqual(["refused", "refused", "private"]);
  expect(await answers("169.254.169.254")).toEqual(["refused", "refused", "refused"]);
  expect(await answers("8.8.8.8")).toEqual(["public", "public", "public"]);
});
