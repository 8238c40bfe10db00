/**
 * Opens sockets to servers that customers host, through the gateway, a separate process.
 *
 * Each process has one gateway, started with the first connection and stopped after a minute without any. The worst
 * that such a server can do is to make its own connections fail; if it crashes the gateway, the other connections are
 * opened again, and the server's have to wait (see `Breaker`).
 */
import net from "node:net";
import { withTimeout } from "../async";
import { Breaker } from "./breaker";
import { type Death, type GatewayProcess, startGatewayProcess } from "./gateway-process";
import type { Header, ViolationKind } from "./messages";
import type { ExternalServer } from "./server";

const IDLE_MS = 60_000;
/** Longest wait for a gateway to start, ms. */
const START_MS = 10_000;
const FIRST_RESTART_MS = 100;
const MAX_RESTART_MS = 10_000;
/** How long after its end a connection may be reported, ms. */
const REPORT_MS = 2000;
/** A gateway that has run for this long is restarted at once. */
const STEADY_MS = 60_000;

/** Receives events; never a host's name. */
interface GatewayObserver {
  died(death: Death): void;
  violated(kind: ViolationKind): void;
}

class Gateway {
  readonly #breaker = new Breaker();
  readonly #observers = new Set<GatewayObserver>();
  /** Servers of open and recently closed connections, by connection id: a report may arrive after the end. */
  readonly #servers = new Map<number, ExternalServer>();
  #open = 0;
  #lastId = 0;
  #process: GatewayProcess | undefined;
  #startedAt = 0;
  #deaths = 0;
  #mayStartAt = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;

  /** The process's id; undefined while none runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  observe(observer: GatewayObserver): () => void {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  /** Returns a socket for a driver that speaks to `server` without TLS or password. Never rejects: the socket fails. */
  async connect(server: ExternalServer): Promise<net.Socket> {
    const pauseMs = this.#breaker.pauseMs(server.key);
    if (pauseMs > 0) return failedSocket("SERVER_PAUSED", pausedMessage(server, pauseMs));
    const id = ++this.#lastId % 0xffffffff || 1;
    clearTimeout(this.#idle);
    this.#open += 1;
    this.#servers.set(id, server);
    try {
      const { socketPath } = await this.#running();
      const socket = net.connect(socketPath);
      socket.once("close", () => this.#closed(id));
      const header: Header = { id, server: server.address };
      socket.write(`${JSON.stringify(header)}\n`);
      return socket;
    } catch {
      this.#closed(id);
      return failedSocket("GATEWAY_DOWN", "the gateway to external databases could not be started");
    }
  }

  /** Stops the process, if there is one; the next connection starts another. */
  stop(): void {
    clearTimeout(this.#idle);
    this.#process?.stop();
    this.#process = undefined;
  }

  async #running(): Promise<GatewayProcess> {
    const until = performance.now() + START_MS;
    while (performance.now() < until) {
      const waitMs = this.#process ? 0 : this.#mayStartAt - performance.now();
      if (waitMs > 0) await Bun.sleep(Math.min(waitMs, until - performance.now()));
      this.#process ??= this.#start();
      const current = this.#process;
      const done = current.ready.then(
        () => true,
        () => false,
      );
      if (await withTimeout(Math.max(until - performance.now(), 0), () => false, done)) return current;
    }
    throw new Error("no gateway");
  }

  #start(): GatewayProcess {
    this.#startedAt = performance.now();
    const started = startGatewayProcess({
      onReport: ({ id, kind }) => {
        const server = this.#servers.get(id);
        if (server) this.#breaker.strike(server.key);
        for (const observer of this.#observers) observer.violated(kind);
      },
      onDeath: (death, suspect) => {
        if (this.#process === started) this.#process = undefined;
        const server = this.#servers.get(suspect);
        if (server) this.#breaker.strike(server.key);
        if (performance.now() - this.#startedAt > STEADY_MS) this.#deaths = 0;
        this.#mayStartAt = performance.now() + Math.min(FIRST_RESTART_MS * 2 ** this.#deaths, MAX_RESTART_MS);
        this.#deaths += 1;
        for (const observer of this.#observers) observer.died(death);
      },
    });
    return started;
  }

  #closed(id: number): void {
    setTimeout(() => this.#servers.delete(id), REPORT_MS).unref();
    this.#open -= 1;
    if (this.#open > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.stop(), IDLE_MS).unref();
  }
}

/** The gateway of this process. */
export const gateway = new Gateway();

/** For the driver, which learns of failures only from a socket. */
function failedSocket(code: string, message: string): net.Socket {
  const socket = new net.Socket();
  setImmediate(() => socket.destroy(Object.assign(new Error(message), { code })));
  return socket;
}

function pausedMessage({ address }: ExternalServer, pauseMs: number): string {
  const seconds = Math.ceil(pauseMs / 1000);
  return `the server at ${address.host} has violated the Postgres protocol repeatedly; the next attempt is in ${seconds} s`;
}
