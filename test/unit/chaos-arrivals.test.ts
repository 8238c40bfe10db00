import { once } from "node:events";
import net from "node:net";
import { expect, test } from "vitest";
import { ArrivalCheck } from "../chaos/harness/arrivals";
import { Kept } from "../chaos/harness/kept";
import { SourceProxies } from "../chaos/harness/source-lines";

test("the proxy reports what it delayed, by connection and by time, for counting from the time of sending", () => {
  const kept = new Kept();
  kept.passed(1, 50, 0);
  kept.begin(100);
  kept.passed(1, 3100, 3000);
  kept.passed(2, 3100, 2500);
  kept.end(3100);
  kept.passed(1, 3400, 250);
  const keptMs = (port: number, until: number) => kept.keptMs(kept.lastPass(port, until)!);
  expect(keptMs(1, 90)).toBe(0);
  expect(keptMs(1, 3140)).toBe(3000);
  expect(keptMs(2, 3140)).toBe(2500);
  // Sent after the connection was repaired.
  expect(keptMs(1, 3440)).toBe(0);
  expect(kept.lastPass(3, 3440)).toBeUndefined();
});

test("a request is the process's whose proxy last passed data by that port", async () => {
  const source = net.createServer().listen(0, "127.0.0.1");
  await once(source, "listening");
  const { port } = source.address() as net.AddressInfo;
  const lines = new SourceProxies();
  const send = async (way: number): Promise<number> => {
    const client = net.connect(way, "127.0.0.1");
    client.write("GET");
    const [accepted] = (await once(source, "connection")) as [net.Socket];
    await once(accepted, "data");
    client.destroy();
    return accepted.remotePort!;
  };
  const [worker, proxy] = [await lines.open(port, "worker 1"), await lines.open(port, "proxy 1")];
  await lines.change(proxy, { call: "countFromSent" });
  await lines.change(proxy, { set: "delayMs", value: 30 });
  const [fromWorker, fromProxy] = [await send(worker), await send(proxy)];
  expect(lines.originOf(fromWorker, performance.now())).toMatchObject({ client: "worker 1", keptMs: 0 });
  const { client, keptMs } = lines.originOf(fromProxy, performance.now());
  expect([client, keptMs >= 29]).toEqual(["proxy 1", true]);
  expect(lines.originOf(1, performance.now())).toEqual({ client: undefined, keptMs: 0 });
  source.close();
});

test("I4: a request that is logged late is checked among those of its time, once", () => {
  const check = new ArrivalCheck();
  const at = (...times: number[]) => times.map((at) => ({ at, what: "GET" }));
  check.add("app", at(0, 100, 200, 300, 400));
  check.add("app", at(5000));
  expect(check.violations).toEqual([]);
  check.add("app", [{ at: 450, what: "GET", isKept: true }]);
  expect(check.violations).toHaveLength(1);
  check.add("app", at(5100));
  expect(check.violations).toHaveLength(1);
  expect(check.most).toBe(6);
});

test("I4: six requests are too many only if they are even with the source's own standstill", () => {
  const requests = [0, 100, 200, 300, 400, 980].map((at) => ({ at, what: "GET" }));
  const stall = { from: -30, to: -1, ms: 29, isOwn: true };
  const check = (stalls: (typeof stall)[]) => {
    const one = new ArrivalCheck();
    one.add("app", requests, stalls);
    return [one.violations.length, one.uncertain.length];
  };
  expect(check([stall])).toEqual([0, 1]);
  // Not long enough, over before, during the others only, or another process's.
  expect(check([{ ...stall, from: -15 }])).toEqual([1, 0]);
  expect(check([{ ...stall, to: -20 }])).toEqual([1, 0]);
  expect(check([{ ...stall, from: 90, to: 150 }])).toEqual([1, 0]);
  expect(check([{ ...stall, isOwn: false }])).toEqual([1, 0]);
});
