/**
 * A fault-injecting TCP proxy on loopback: a test can cut it, slow it down, limit its bandwidth, or make it half open,
 * so that both ends believe in a connection that carries nothing.
 *
 * It can also stop at a statement: `hold` stops one side of a connection at a statement that a client sends to
 * Postgres, or at its answer, until the test has done its work at that point. The product's code contains no hooks for
 * this.
 */
import net from "node:net";
import { blackholeSocket, CAN_DEAFEN } from "./deaf-socket";
import { StatementReader } from "./postgres-statements";

/** Longer than the time for which kernels delay an acknowledgment, 200 ms. */
const LAST_WORDS_MS = 250;

/** The point in the life of a statement at which a connection is held: not sent yet, running on the server, or done. */
export type HoldPoint = "before" | "inside" | "after";

export interface Held {
  /** The text of the statement. */
  statement: string;
  /** The client's port, which identifies its process. */
  clientPort: number;
  /** Lets the connection continue. */
  pass(): void;
  /** Cuts the connection. What was held is lost. */
  cut(): void;
}

export interface FaultProxy extends AsyncDisposable {
  port: number;
  /** The target of new connections. */
  target: { host: string; port: number };
  /** The delay of each piece, each way, ms. */
  delayMs: number;
  /** For each connection: towards the target, and back. */
  upBytesPerSecond: number;
  downBytesPerSecond: number;
  /** `url`, through this proxy. */
  over(url: string): string;
  /** Ends all connections and refuses new ones. */
  cut(): void;
  /** Ends all connections; clients may connect again. */
  reset(): void;
  /** Carries nothing, although connections are accepted. What is sent meanwhile arrives after `restore`. */
  stall(): void;
  /**
   * Silently separates the two ends of all current connections. Where sockets can be made deaf, even what the ends send
   * no longer arrives, once this resolves. New connections are served.
   */
  blackhole(): Promise<void>;
  /** Ends all faults. Blackholed connections stay so. */
  restore(): void;
  /** Whether data that was sent to the target earlier has not been passed on yet. */
  readonly isHolding: boolean;
  /**
   * Holds the connection that next sends a matching statement, and no other that sends a matching one meanwhile.
   * Rejects with the signal's reason.
   */
  hold(
    matches: (statement: string, clientPort: number) => boolean,
    at: HoldPoint,
    signal: AbortSignal,
  ): Promise<Held>;
  /**
   * Called for each piece that is passed to the target: the proxy's own port there, and how long the proxy had the
   * piece, ms.
   */
  onPass: (targetPort: number, keptMs: number) => void;
  /** Called for every new connection: the client's port, and the proxy's own port at the target. */
  onConnect: (clientPort: number, targetPort: number) => void;
}

interface Watch {
  matches: (statement: string, clientPort: number) => boolean;
  at: HoldPoint;
  found: (held: Held) => void;
  /** No caller waits for it any more. */
  isOver: boolean;
}

/**
 * Opens a proxy to `target`, on a free port.
 *
 * @param options.isPostgres the traffic is Postgres' protocol, and statements can be held
 */
export async function faultProxy(
  target: { host: string; port: number },
  options: { isPostgres: boolean },
): Promise<FaultProxy> {
  const connections = new Set<Connection>();
  const watches = new Set<Watch>();
  const state = { isCut: false, isStalled: false };
  const server = net.createServer((near) => {
    if (state.isCut) return near.destroy();
    const connection = new Connection(near, proxy, state, options.isPostgres ? watches : undefined);
    connections.add(connection);
    connection.onEnd = () => connections.delete(connection);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const flow = () => {
    for (const connection of connections) connection.flow();
  };
  const proxy: FaultProxy = {
    port,
    target,
    delayMs: 0,
    upBytesPerSecond: Number.POSITIVE_INFINITY,
    downBytesPerSecond: Number.POSITIVE_INFINITY,
    get isHolding() {
      return [...connections].some((connection) => connection.isHolding);
    },
    over(url) {
      const over = new URL(url);
      over.hostname = "127.0.0.1";
      over.port = String(port);
      return over.href.replace(/\/$/, url.endsWith("/") ? "/" : "");
    },
    cut() {
      state.isCut = true;
      proxy.reset();
    },
    reset() {
      for (const connection of connections) connection.cut();
    },
    stall() {
      state.isStalled = true;
    },
    async blackhole() {
      await Promise.all([...connections].map((connection) => connection.blackhole()));
    },
    restore() {
      state.isCut = false;
      state.isStalled = false;
      proxy.delayMs = 0;
      proxy.upBytesPerSecond = proxy.downBytesPerSecond = Number.POSITIVE_INFINITY;
      flow();
    },
    hold(matches, at, signal) {
      return new Promise((resolve, reject) => {
        const end = () => {
          watches.delete(watch);
          watch.isOver = true;
          signal.removeEventListener("abort", timeOut);
        };
        const timeOut = () => {
          end();
          reject(signal.reason);
        };
        const watch: Watch = {
          matches,
          at,
          found: (held) => {
            end();
            resolve(held);
          },
          isOver: false,
        };
        if (signal.aborted) return reject(signal.reason);
        signal.addEventListener("abort", timeOut);
        watches.add(watch);
      });
    },
    onPass: () => {},
    onConnect: () => {},
    async [Symbol.asyncDispose]() {
      proxy.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

/** One connection: two directions, each with the data that has arrived and may not pass yet. */
class Connection {
  isStranded = false;
  onEnd: () => void = () => {};
  readonly #near: net.Socket;
  readonly #far: net.Socket;
  readonly #up: Way;
  readonly #down: Way;
  readonly #watches: Set<Watch> | undefined;
  /** The connection has sent the statement, and is held when the answer arrives. */
  #awaited: Watch | undefined;

  /** @param watches absent: the traffic is not parsed */
  constructor(
    near: net.Socket,
    line: FaultProxy,
    state: { isStalled: boolean },
    watches: Set<Watch> | undefined,
  ) {
    const isShut = () => state.isStalled || this.isStranded;
    this.#watches = watches;
    this.#near = near;
    this.#far = net.connect(line.target.port, line.target.host);
    this.#up = new Way(this.#far, line, "upBytesPerSecond", isShut, (keptMs) =>
      line.onPass(this.#far.localPort ?? 0, keptMs),
    );
    this.#down = new Way(near, line, "downBytesPerSecond", isShut);
    const clientPort = near.remotePort ?? 0;
    const statements = new StatementReader();
    near.on("data", (bytes: Buffer) => {
      this.#up.take(bytes);
      const seen = this.#matching(watches ? statements.read(bytes) : [], clientPort);
      if (seen) this.#hold(seen.watch, seen.statement, clientPort);
      this.#up.flow();
    });
    this.#far.on("data", (bytes: Buffer) => {
      this.#down.take(bytes);
      this.#down.flow();
    });
    this.#far.on("connect", () => {
      if (this.isStranded) void this.blackhole();
      line.onConnect(clientPort, this.#far.localPort ?? 0);
    });
    for (const socket of [near, this.#far]) {
      socket.on("error", () => {});
      socket.on("close", () => this.#ended(socket));
    }
  }

  get isHolding(): boolean {
    return !this.isStranded && this.#up.isHolding;
  }

  flow(): void {
    this.#up.flow();
    this.#down.flow();
  }

  async blackhole(): Promise<void> {
    this.isStranded = true;
    // A socket that does not receive the acknowledgment of its data would send it again and again.
    await Bun.sleep(LAST_WORDS_MS);
    for (const socket of CAN_DEAFEN ? [this.#near, this.#far] : []) {
      if (!socket.connecting && !socket.destroyed) blackholeSocket(socket);
    }
  }

  cut(): void {
    this.#awaitNoMore();
    this.#near.destroy();
    this.#far.destroy();
    this.onEnd();
  }

  /** One side has closed. The other is closed after it has received the rest; never, if it is blackholed. */
  #ended(socket: net.Socket): void {
    this.#awaitNoMore();
    const [other, way] = socket === this.#near ? [this.#far, this.#up] : [this.#near, this.#down];
    if (!other.destroyed) way.end(() => other.end());
    else this.onEnd();
  }

  #matching(statements: string[], clientPort: number) {
    for (const statement of statements) {
      for (const watch of this.#watches ?? [])
        if (watch.matches(statement, clientPort)) return { watch, statement };
    }
    return null;
  }

  #hold(watch: Watch, statement: string, clientPort: number): void {
    // At once: another connection that sends a matching statement before the answer would also be held, and never
    // released.
    this.#watches?.delete(watch);
    const held: Held = {
      statement,
      clientPort,
      pass: () => {
        this.#up.isHeld = this.#down.isHeld = false;
        this.flow();
      },
      cut: () => this.cut(),
    };
    this.#up.isHeld = watch.at === "before";
    this.#down.isHeld = true;
    const find = () => {
      this.#awaited = undefined;
      if (watch.isOver) held.pass();
      else watch.found(held);
    };
    if (watch.at !== "after") {
      find();
      return;
    }
    this.#awaited = watch;
    this.#down.onHeld = find;
  }

  /** The connection ended before the answer: another one is held in its place. */
  #awaitNoMore(): void {
    const watch = this.#awaited;
    if (!watch) return;
    this.#awaited = undefined;
    this.#down.onHeld = undefined;
    this.#down.isHeld = false;
    if (!watch.isOver) this.#watches?.add(watch);
  }
}

/** One direction of a connection. */
class Way {
  /** A test holds it. */
  isHeld = false;
  /** Called once, when data waits because the direction is held. */
  onHeld: (() => void) | undefined;
  readonly #to: net.Socket;
  readonly #line: FaultProxy;
  readonly #rate: "upBytesPerSecond" | "downBytesPerSecond";
  readonly #isShut: () => boolean;
  readonly #onPass: (keptMs: number) => void;
  readonly #waiting: { bytes: Buffer; since: number }[] = [];
  #isFlowing = false;
  #onEnd: (() => void) | undefined;

  constructor(
    to: net.Socket,
    line: FaultProxy,
    rate: "upBytesPerSecond" | "downBytesPerSecond",
    isShut: () => boolean,
    onPass: (keptMs: number) => void = () => {},
  ) {
    this.#to = to;
    this.#line = line;
    this.#rate = rate;
    this.#isShut = isShut;
    this.#onPass = onPass;
  }

  get isHolding(): boolean {
    return this.#waiting.length > 0;
  }

  take(bytes: Buffer): void {
    this.#waiting.push({ bytes: Buffer.from(bytes), since: performance.now() });
    if (this.isHeld && this.onHeld) {
      const tell = this.onHeld;
      this.onHeld = undefined;
      tell();
    }
  }

  /** No more data will arrive; `done` is called when the waiting data has been sent. */
  end(done: () => void): void {
    this.#onEnd = done;
    this.flow();
  }

  /** Sends what may pass, in order. */
  flow(): void {
    if (this.#isFlowing) return;
    const { delayMs, [this.#rate]: bytesPerSecond } = this.#line;
    while (this.#waiting.length > 0 && !this.isHeld && !this.#isShut()) {
      const { bytes, since } = this.#waiting.shift()!;
      const pass = () => {
        this.#to.write(bytes);
        this.#onPass(performance.now() - since);
      };
      // From its arrival here: pieces are under way at the same time, as on a network.
      const delayLeftMs = Math.max(0, since + delayMs - performance.now());
      const waitMs = delayLeftMs + (bytes.length / bytesPerSecond) * 1000;
      if (waitMs > 0) {
        this.#isFlowing = true;
        setTimeout(() => {
          this.#isFlowing = false;
          pass();
          this.flow();
        }, waitMs);
        return;
      }
      pass();
    }
    if (this.#waiting.length > 0 || this.isHeld || this.#isShut()) return;
    this.#onEnd?.();
    this.#onEnd = undefined;
  }
}
