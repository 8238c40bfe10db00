import fc from "fast-check";
import { expect, test } from "vitest";
import { type AddressKind, checkHost, kindOfAddress } from "../../core/control/address-guard";

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
] as [string, AddressKind][])("%s is %s", ([address, kind]) => {
  expect(kindOfAddress(address)).toBe(kind);
});

test("an IPv4 address inside an IPv6 one is what it leads to, however it is written", () => {
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

test("what is allowed decides over this machine and private networks, over link-local nothing does", async () => {
  const answers = async (host: string) =>
    Promise.all(
      (["no", "loopback", "yes"] as const).map((allowed) => checkHost(host, allowed).catch(() => "refused")),
    );
  expect(await answers("localhost")).toEqual(["refused", "loopback", "loopback"]);
  expect(await answers("10.0.0.1")).toEqual(["refused", "refused", "private"]);
  expect(await answers("169.254.169.254")).toEqual(["refused", "refused", "refused"]);
  expect(await answers("8.8.8.8")).toEqual(["public", "public", "public"]);
});
