/** One connection through the gateway: its header, the connection to the server, the login, then the relay. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { LOGIN_MS } from "../limits";
import { type Header, LINK_ADDRESS, LINK_TLS, LOGGED_IN, parameterStatus, READY_IDLE } from "../messages";
import { connectToServer, type ServerConnection } from "./dial";
import { faultMessage, GatewayRefusal } from "./fault";
import { logIn } from "./login";
import { Pull } from "./pull";
import { Relay } from "./relay";

const NEWLINE = 0x0a;
/** Replaces the version at the start of a packet that cancels another connection's statement. */
const CANCEL_CODE = 80877102;
/** Longest time to write the remaining bytes to a driver that does not read, ms. */
const FINISH_MS = 5000;

interface SessionHandlers {
  /** Runs `work`, a step on behalf of the session. */
  working(id: number, work: () => void): void;
  failed(id: number, fault: unknown): void;
}

export class GatewaySession {
  readonly #driver: Socket;
  readonly #handlers: SessionHandlers;
  readonly #abort = new AbortController();
  #server: Socket | undefined;
  #relay: Relay | undefined;
  #host = "";
  #isOver = false;
  id = 0;

  constructor(driver: Socket, handlers: SessionHandlers) {
    this.#driver = driver;
    this.#handlers = handlers;
  }

  /** Bytes that we buffer for the server. */
  get held(): number {
    return this.#relay?.held ?? 0;
  }

  /** Runs until one side has ended the connection. Never rejects. */
  async run(): Promise<void> {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    this.#driver.once("close", () => {
      this.#abort.abort(new GatewayRefusal("CONNECTION_CLOSED", "the connection was closed"));
      this.#end();
      resolve();
    });
    this.#driver.on("error", () => {});
    const pull = new Pull(this.#driver);
    const late = setTimeout(() => this.#abort.abort(loginTimeout()), LOGIN_MS);
    try {
      const header = JSON.parse((await pull.takeThrough(NEWLINE)).toString()) as Header;
      this.id = header.id;
      this.#host = header.server.host;
      await this.#connect(header, pull);
    } catch (error) {
      this.fail(this.#abort.signal.aborted ? this.#abort.signal.reason : error);
    } finally {
      clearTimeout(late);
    }
    await closed;
  }

  /** Ends the connection, and reports the reason to the driver. */
  fail(fault: unknown): void {
    if (this.#isOver) return;
    this.#handlers.failed(this.id, fault);
    this.#finish(
      Buffer.concat([faultMessage(fault, this.#host), this.#relay ? READY_IDLE : Buffer.alloc(0)]),
    );
  }

  /** Fails the connection if the server is late. */
  checkTime(now: number): void {
    try {
      this.#relay?.checkTime(now);
    } catch (error) {
      this.fail(error);
    }
  }

  async #connect({ server: address }: Header, pull: Pull): Promise<void> {
    const head = await pull.take(4);
    const startup = Buffer.concat([head, await pull.take(head.readUInt32BE(0) - 4)]);
    const { signal } = this.#abort;
    const dialed = await connectToServer(address, signal);
    const server = dialed.socket;
    this.#server = server;
    if (this.#isOver) return void server.destroy();
    server.on("error", () => {});
    if (startup.readUInt32BE(4) === CANCEL_CODE) return this.#cancel(server, startup);
    const serverPull = new Pull(server);
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    aborted.catch(() => {});
    const isEncrypted = "encrypted" in server;
    const login = { socket: server, pull: serverPull, server: address, isEncrypted };
    const answers = await Promise.race([logIn(login, startup), aborted]);
    if (this.#isOver) return;
    this.#driver.write(Buffer.concat([LOGGED_IN, ...aboutLink(dialed), answers]));
    this.#relayAll(server, pull.release(), serverPull.release());
  }

  #relayAll(server: Socket, driverRest: Buffer, serverRest: Buffer): void {
    server.once("close", () => this.#finish());
    server.once("end", () => this.#finish());
    if (server.destroyed) {
      this.#finish();
      return;
    }
    this.#relay = new Relay(this.#driver, server, (fault) => this.fail(fault));
    this.#relay.start(driverRest, serverRest, (work) => this.#handlers.working(this.id, work));
  }

  /** The server answers by ending the connection. */
  #cancel(server: Socket, request: Buffer): void {
    server.once("close", () => this.#finish());
    server.resume().write(request);
    setTimeout(() => this.#finish(), FINISH_MS).unref();
  }

  /** Ends the connection after `last`, a final message for the driver. */
  #finish(last?: Buffer): void {
    if (this.#isOver) return;
    this.#end();
    if (last) this.#driver.end(last);
    else this.#driver.end();
    this.#driver.resume();
    setTimeout(() => this.#driver.destroy(), FINISH_MS).unref();
  }

  #end(): void {
    this.#isOver = true;
    this.#server?.destroy();
  }
}

/** Describes the gateway's connection, which the process behind the gateway cannot see. */
function aboutLink({ socket, address }: ServerConnection): Buffer[] {
  const protocol = "encrypted" in socket ? ((socket as TLSSocket).getProtocol() ?? "TLS") : "";
  return [parameterStatus(LINK_TLS, protocol), parameterStatus(LINK_ADDRESS, address)];
}

function loginTimeout(): GatewayRefusal {
  return new GatewayRefusal("CONNECT_TIMEOUT", `the login took more than ${LOGIN_MS / 1000} seconds`);
}
