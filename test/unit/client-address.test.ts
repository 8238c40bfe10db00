import { expect, test } from "vitest";
import { clientAddress } from "../../core/http";
import { recordAddress } from "../../core/http/client-address";

function request(connection: string, forwarded?: string): Request {
  const made = new Request("http://console/", forwarded ? { headers: { "x-forwarded-for": forwarded } } : {});
  recordAddress(made, connection);
  return made;
}

test("the connection's own address counts, in any notation; a header only where one is configured", () => {
  expect(clientAddress(request("::ffff:192.0.2.1"), undefined)).toBe("192.0.2.1");
  expect(clientAddress(request("::1"), undefined)).toBe("127.0.0.1");
  expect(clientAddress(request("2001:db8::7"), undefined)).toBe("2001:db8::7");
  expect(clientAddress(request("192.0.2.1", "198.51.100.1"), undefined)).toBe("192.0.2.1");
  expect(clientAddress(new Request("http://console/"), undefined)).toBeNull();
});

test("the last entry of a proxy's header counts: the others were written by the client", () => {
  const forwarded = (value: string) => clientAddress(request("10.0.0.1", value), "x-forwarded-for");
  expect(forwarded("203.0.113.9")).toBe("203.0.113.9");
  expect(forwarded("1.1.1.1, 8.8.8.8 , 203.0.113.9")).toBe("203.0.113.9");
  expect(clientAddress(request("10.0.0.1"), "x-forwarded-for")).toBe("10.0.0.1");
});
