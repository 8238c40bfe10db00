/**
 * I4 when the way to the source becomes faster while requests are under way: connection pools and wait queues of two
 * processes, on a virtual clock, with one limiter backend.
 */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { ConnectionPool } from "../../core/http/connections";
import type { OpenedSocket } from "../../core/http/connections/dial";
import type { Priority } from "../../core/limiter/backend";
import { createFallbackLimiter } from "../../core/limiter/fallback-limiter";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";
import { createWaitQueue } from "../../core/limiter/wait-queue";
import { mostWithin, VirtualClock } from "../support/quota-simulation";

const never = new AbortController().signal;
/** One way, ms: far for a while, until the way is cut, and otherwise near. */
const FAR_MS = 240;
const NEAR_MS = 40;
const FAR_FOR_MS = 2000;
const END_MS = 9000;
/** The way becomes faster at any phase of the window of a second. */
const CUTS_AT_MS = Array.from({ length: 20 }, (_, index) => 5000 + 50 * index);
const ANSWER = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
const REQUEST = {
  method: "GET",
  path: "/v0/x",
  head: "",
  body: undefined,
  mostBytes: 100,
  timeoutMs: 60_000,
};

/** What a connection needs of a socket. What was written arrives, even if the connection breaks meanwhile. */
class FarSocket extends EventEmitter {
  destroyed = false;
  readonly writableLength = 0;
  readonly #onWrite: () => void;

  constructor(onWrite: () => void) {
    super();
    this.#onWrite = onWrite;
  }

  push(bytes: Buffer): boolean {
    return this.emit("data", bytes);
  }
  ref(): void {}
  unref(): void {}
  write(): void {
    this.#onWrite();
  }
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

function scene(cutAtMs: number) {
  const clock = new VirtualClock();
  const backend = createFallbackLimiter(clock, 1000);
  backend.open(5, 0);
  const arrived: number[] = [];
  const oneWayMs = () => (clock.now() >= cutAtMs - FAR_FOR_MS && clock.now() < cutAtMs ? FAR_MS : NEAR_MS);

  function start(kind: Priority) {
    /** In the order in which their breaks are noticed. */
    const sockets: { socket: FarSocket; isUsed: boolean }[] = [];
    let isOver = false;
    const open = () => {
      const made = { socket: undefined as unknown as FarSocket, isUsed: false };
      made.socket = new FarSocket(() => {
        made.isUsed = true;
        const ms = oneWayMs();
        arrived.push(clock.now() + ms);
        clock.at(clock.now() + 2 * ms, () => {
          made.isUsed = false;
          if (!made.socket.destroyed) made.socket.push(ANSWER);
        });
      });
      sockets.push(made);
      return made.socket as unknown as OpenedSocket["socket"];
    };
    const pool = new ConnectionPool("http://source.test", {
      now: clock.now,
      async dial() {
        const roundTripMs = 2 * oneWayMs();
        await clock.sleep(roundTripMs);
        return { socket: open(), roundTripMs, usualMs: roundTripMs };
      },
    });
    const queue = createWaitQueue(kind, backend, clock, createSchedulingDelay(clock), { onExpired() {} });
    return {
      async send() {
        using held = await queue.wait(Infinity, never, { connections: pool });
        if (!isOver) await held!.exchange(REQUEST, never).catch(() => {});
      },
      /** The source's side resets all connections; those in use notice it first. */
      async cut() {
        for (const { socket } of sockets.splice(0).sort((a, b) => Number(b.isUsed) - Number(a.isUsed))) {
          socket.destroy();
          // Promises settle between two events of sockets.
          await new Promise((resolve) => setImmediate(resolve));
        }
      },
      kill() {
        isOver = true;
        for (const { socket } of sockets) socket.removeAllListeners();
      },
      get isOver() {
        return isOver;
      },
    };
  }
  return { clock, arrived, start };
}

type Process = ReturnType<ReturnType<typeof scene>["start"]>;

/** Sends one request after the other, in this many lines. */
function keepSending(process: Process, clock: VirtualClock, lines: number): void {
  for (let line = 0; line < lines; line++) {
    void (async () => {
      while (clock.now() < END_MS && !process.isOver) await process.send();
    })();
  }
}

/** Expects that no second has six requests, whenever the way becomes faster. */
async function expectKept(play: (stage: ReturnType<typeof scene>, cutAtMs: number) => void): Promise<void> {
  const most = [];
  for (const cutAtMs of CUTS_AT_MS) {
    const stage = scene(cutAtMs);
    play(stage, cutAtMs);
    await stage.clock.run(END_MS);
    expect(stage.arrived.length).toBeGreaterThan(25);
    most.push(mostWithin(stage.arrived, 1000));
  }
  expect(Math.max(...most), `by the time of the cut: ${most}`).toBeLessThanOrEqual(5);
}

test("I4: a process that had no connection when the way became faster", async () => {
  await expectKept(({ clock, start }, cutAtMs) => {
    const [busy, quiet] = [start("sync"), start("client")];
    keepSending(busy, clock, 4);
    clock.at(cutAtMs, () => void clock.during(busy.cut()));
    clock.at(cutAtMs, () => keepSending(quiet, clock, 6));
  });
});

test("I4: a process that was killed, and starts again when the way has become faster", async () => {
  await expectKept(({ clock, start }, cutAtMs) => {
    const killed = start("client");
    keepSending(killed, clock, 6);
    clock.at(cutAtMs - 100, () => killed.kill());
    clock.at(cutAtMs + 100, () => keepSending(start("client"), clock, 6));
  });
});

test("I4: a process whose connections have served no answer yet when they break", async () => {
  await expectKept(({ clock, start }, cutAtMs) => {
    const [busy, fresh] = [start("sync"), start("client")];
    keepSending(busy, clock, 4);
    clock.at(cutAtMs - 2 * FAR_MS - 10, () => keepSending(fresh, clock, 6));
    clock.at(cutAtMs, () => void clock.during(Promise.all([busy.cut(), fresh.cut()])));
  });
});

test("I4: a process of whose connections those that are in use break first", async () => {
  await expectKept(({ clock, start }, cutAtMs) => {
    const busy = start("client");
    keepSending(busy, clock, 6);
    clock.at(cutAtMs, () => void clock.during(busy.cut()));
  });
});
