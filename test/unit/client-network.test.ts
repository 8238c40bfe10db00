import fc from "fast-check";
import { expect, test } from "vitest";
import { clientNetwork, networkOf } from "../../core/http";
import { recordAddress } from "../../core/http/client-address";

test.for([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::ffff:c000:201", "192.0.2.1"],
  ["2001:db8::7", "2001:db8:0:0::/64"],
  ["2001:DB8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["[2001:db8:1:2::1]", "2001:db8:1:2::/64"],
  ["620e::ef0a:d7de:a08:96.24.12.0", "620e:0:0:ef0a::/64"],
  ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["1.2.3.4:5678", "1.2.3.4:5678"],
  ["unknown", "unknown"],
])("the network of %s is %s", ([address, network]) => {
  expect(networkOf(address!)).toBe(network);
});

test("addresses of one /64 are one network, those of two are two", () => {
  const group = fc.integer({ min: 0, max: 0xffff }).map((number) => number.toString(16));
  const half = fc.array(group, { minLength: 4, maxLength: 4 }).map((groups) => groups.join(":"));
  fc.assert(
    fc.property(half, half, half, half, (network, other, host, otherHost) => {
      // IPv4 addresses in IPv6 notation are IPv4 addresses.
      fc.pre(network !== "0:0:0:0" && other !== "0:0:0:0");
      expect(networkOf(`${network}:${host}`)).toBe(networkOf(`${network}:${otherHost}`));
      expect(networkOf(`${network}:${host}`) === networkOf(`${other}:${host}`)).toBe(network === other);
    }),
  );
});

test("any header of a proxy results in a name of bounded length", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 200 }), fc.ipV6(), fc.ipV4()), (text) => {
      expect(networkOf(text).length).toBeLessThanOrEqual(64);
    }),
    { numRuns: 2000 },
  );
});

const from = (address: string, headers: Record<string, string> = {}) => {
  const request = new Request("http://proxy/", { headers });
  recordAddress(request, address);
  return request;
};

test.for([
  "127.0.0.1",
  "::1",
  "::ffff:10.0.0.7",
  "10.0.0.7",
  "172.20.0.3",
  "192.168.1.1",
  "fd00::7",
  "fe80::1",
])(
  "without a header, the clients behind %s, maybe a reverse proxy, do not share one client's limits",
  (address) => {
    expect(clientNetwork(from(address), undefined, "a")).not.toBe(
      clientNetwork(from(address), undefined, "b"),
    );
    expect(clientNetwork(from(address), undefined, "a")).toBe(clientNetwork(from(address), undefined, "a"));
    // Where the header is configured, all clients without it count as one.
    expect(clientNetwork(from(address), "x-client", "a")).toBe(clientNetwork(from(address), "x-client", "b"));
    expect(clientNetwork(from(address, { "x-client": "192.0.2.1" }), "x-client", "a")).toBe("192.0.2.1");
  },
);

test.for(["192.0.2.1", "172.32.0.1", "2001:db8::7"])("%s is one client, whatever its keys", (address) => {
  expect(clientNetwork(from(address), undefined, "a")).toBe(networkOf(address));
});
