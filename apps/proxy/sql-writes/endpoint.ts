/**
 * The endpoint of SQL writes: a server of Postgres' protocol that the triggers of replicas connect to with dblink. It
 * knows one kind of query, a request in JSON, and answers with one row.
 *
 * I8. A connection is that of one base, by a secret that is in its replica alone.
 *
 * Strangers hold few connections and for a short time, and cost no lookup once their network has named a few bases that
 * do not exist. Of the others, each account has a share of connections and memory; when all are in use, idle connections and
 * requests that are still arriving give way, those of the account that has the most.
 */
import net from "node:net";
import tls from "node:tls";
import { type BudgetShare, networkOf, portError, SharedBudget } from "../../../core/http";
import type { Logger } from "../../../core/log";
import { MAX_WRITE_BYTES } from "../../../core/replica";
import { SCRAM_MECHANISM } from "../../../core/scram";
import {
  answers,
  MessageReader,
  ProtocolError,
  type ProtocolMessage,
  queryText,
  saslInitial,
} from "./messages";
import { beginScram, type ScramExchange } from "./scram";
import { Strangers } from "./strangers";

/** Authenticated connections at a time. */
const CONNECTIONS = { most: 2000, mostPer: { base: 200, network: 1000 } };
/** Bytes of requests that have no answer yet. */
const MEMORY = { most: 8 * MAX_WRITE_BYTES, mostPer: { network: 4 * MAX_WRITE_BYTES } };
/** The first bytes of a request do not count there: a few large requests must not keep out all small ones. */
const SMALL_BYTES = 64 * 1024;
/** Our own SQLSTATE, by which the triggers know that nothing was sent. */
const NOT_TAKEN = "BT001";
/** Time until a client has authenticated, ms. */
const LOGIN_MS = 5000;
/** A connection without a request for this long is closed: the next request connects again. */
const IDLE_MS = 300_000;
/** A request arrives completely in this time, ms. */
const REQUEST_MS = 60_000;

interface EndpointOptions {
  port: number;
  host: string | undefined;
  /** With a certificate, connections without TLS are refused. */
  tls: { cert: Buffer; key: Buffer } | undefined;
  log: Logger;
  /** The account and the secret of a base; undefined: it has none. */
  accessOf(baseId: string): Promise<{ accountId: string; secret: string } | undefined>;
  /** Answers a request. @param gone aborted when nothing more must be sent: the client is gone, or the process stops */
  answer(baseId: string, request: unknown, gone: AbortSignal): Promise<EndpointAnswer>;
  budgets?: Budgets;
}

export interface EndpointAnswer {
  /** For the client, as JSON. */
  answer: unknown;
  /** What the client need not wait for; its next request does. It does not reject. */
  rest?: Promise<void>;
}

export interface WriteEndpointServer {
  port: number;
  /** Takes no more requests, and waits for the calls under way. */
  stop(): Promise<void>;
}

/** @throws BasetideError `port_taken` */
export async function openWriteEndpoint(options: EndpointOptions): Promise<WriteEndpointServer> {
  const connections = new Set<Connection>();
  const strangers = new Strangers();
  const {
    budgets = {
      connections: new SharedBudget(CONNECTIONS),
      memory: new SharedBudget(MEMORY),
      smallBytes: SMALL_BYTES,
    },
  } = options;
  const server = net.createServer({ noDelay: true }, (socket) => {
    const network = networkOf(socket.remoteAddress ?? "unknown");
    const place = strangers.enter(network, () => socket.destroy());
    if (!place) return void socket.destroy();
    const connection = new Connection(socket, options, budgets, { strangers, network, place });
    connections.add(connection);
    socket.on("close", () => {
      connections.delete(connection);
      place[Symbol.dispose]();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(portError(error, options.port, "WRITE_PORT")));
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as net.AddressInfo;
  return {
    port,
    async stop() {
      server.close();
      await Promise.all([...connections].map((connection) => connection.end()));
    },
  };
}

/** The client of a connection, before it has authenticated. */
interface Stranger {
  strangers: Strangers;
  network: string;
  place: Disposable;
}

/** Their networks are accounts: one server has bases of many. */
interface Budgets {
  connections: SharedBudget<"base">;
  memory: SharedBudget<never>;
  /** So many bytes of each request do not count. */
  smallBytes: number;
}

class Connection {
  #socket: net.Socket;
  #isEncrypted = false;
  readonly #options: EndpointOptions;
  readonly #budgets: Budgets;
  readonly #stranger: Stranger;
  readonly #reader = new MessageReader();
  readonly #gone = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #user = "";
  #accountId = "";
  #scram: ScramExchange | undefined;
  /** Once the client has authenticated. */
  #place: BudgetShare | undefined;
  /** Of the request that arrives or is being answered. */
  #memory: BudgetShare | undefined;
  /** What may still arrive of it without counting, bytes. */
  #smallBytes = 0;
  /** Messages are handled one after the other. */
  #work: Promise<void> = Promise.resolve();
  #isHandling = false;
  /** The client's request has no answer yet. */
  #isWaiting = false;
  #isEnding = false;
  /** Nothing more is read from the client. */
  #isRefused = false;
  /** The client's base, once it has authenticated. */
  baseId: string | undefined;

  constructor(socket: net.Socket, options: EndpointOptions, budgets: Budgets, stranger: Stranger) {
    this.#socket = socket;
    this.#options = options;
    this.#budgets = budgets;
    this.#stranger = stranger;
    this.#waitFor(LOGIN_MS);
    this.#listen(socket);
    socket.on("close", () => {
      clearTimeout(this.#timer);
      this.#gone.abort();
      this.#place?.[Symbol.dispose]();
      this.#memory?.[Symbol.dispose]();
    });
  }

  #listen(socket: net.Socket): void {
    socket.on("data", (chunk) => this.#arrived(chunk));
    socket.on("error", () => this.#socket.destroy());
  }

  /** From now on the connection uses TLS. */
  #encrypt(options: NonNullable<EndpointOptions["tls"]>): void {
    // What a client has sent before it was asked to is not encrypted.
    if (this.#reader.length > 0 || this.#isEncrypted) throw new ProtocolError("data before TLS");
    this.#socket.removeAllListeners("data");
    this.#socket.write("S");
    this.#socket = new tls.TLSSocket(this.#socket, { isServer: true, ...options });
    this.#isEncrypted = true;
    this.#listen(this.#socket);
  }

  /** Closes the connection after the request that is being answered, which sends nothing more. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#gone.abort();
    await this.#work;
    this.#socket.destroy();
  }

  #waitFor(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#socket.destroy(), ms);
  }

  #arrived(chunk: Buffer): void {
    if (this.#isRefused) return;
    // A client waits for its answer: it sends nothing meanwhile.
    if (this.#isHandling && this.#isWaiting) return void this.#socket.destroy();
    if (this.baseId !== undefined && !this.#hold(chunk.length)) return;
    this.#reader.push(chunk);
    if (this.#isHandling) return;
    this.#isHandling = true;
    this.#work = this.#handleAll()
      .catch((error: unknown) => {
        const isTheirs = error instanceof ProtocolError;
        this.#options.log[isTheirs ? "debug" : "warn"]({ error }, "a connection for SQL writes failed");
        this.#fail(isTheirs ? "08P01" : "XX000", isTheirs ? error.message : "internal error");
      })
      .finally(() => {
        this.#isHandling = false;
      });
  }

  /** Takes memory for a part of a request. @returns false if there is none */
  #hold(bytes: number): boolean {
    const giveWay = () => this.#giveWay("too many large requests at a time");
    if (!this.#memory) {
      this.#waitFor(REQUEST_MS);
      this.#place?.keep();
      this.#memory = this.#budgets.memory.open({ network: this.#accountId }, { giveWay });
      this.#smallBytes = this.#budgets.smallBytes;
    }
    const counted = Math.max(0, bytes - this.#smallBytes);
    this.#smallBytes = Math.max(0, this.#smallBytes - bytes);
    if (counted === 0 || this.#memory.take(counted)) return true;
    giveWay();
    return false;
  }

  /** The connection has no request. @returns false if it must not have a place */
  #rest(baseId: string): boolean {
    this.#waitFor(IDLE_MS);
    this.#place?.[Symbol.dispose]();
    const giveWay = () => this.#socket.destroy();
    this.#place = this.#budgets.connections.open({ base: baseId, network: this.#accountId }, { giveWay });
    return this.#place.take(1);
  }

  /** Nothing of the client's request is used. */
  #giveWay(why: string): void {
    this.#isRefused = true;
    this.#reader.clear();
    this.#memory?.[Symbol.dispose]();
    this.#fail(NOT_TAKEN, why);
  }

  async #handleAll(): Promise<void> {
    for (let message = this.#reader.next(); message; message = this.#reader.next()) {
      this.#isWaiting = true;
      await this.#handle(message);
      if (this.#socket.destroyed || this.#isEnding) return;
    }
    if (this.baseId === undefined) return;
    if (this.#reader.length === 0) this.#rest(this.baseId);
    else if (!this.#memory) this.#hold(this.#reader.length);
  }

  async #handle(message: ProtocolMessage): Promise<void> {
    const { tls: certified } = this.#options;
    if (message.kind === "encryption") {
      if (certified && message.isTls) return this.#encrypt(certified);
      this.#socket.write("N");
      return;
    }
    if (message.kind === "other_version") return this.#fail("0A000", "only protocol 3 is supported");
    if (certified && !this.#isEncrypted) return this.#fail("28000", "this endpoint requires TLS");
    if (message.kind === "startup") {
      this.#user = message.parameters.get("user") ?? "";
      this.#socket.write(answers.sasl("offer", SCRAM_MECHANISM));
      return;
    }
    const { type, body } = message;
    if (type === "X") return void this.#socket.end();
    if (this.baseId === undefined) {
      if (type !== "p") throw new ProtocolError(`a message ${JSON.stringify(type)} before the password`);
      return this.#authenticate(body);
    }
    if (type !== "Q") throw new ProtocolError(`a message ${JSON.stringify(type)}`);
    clearTimeout(this.#timer);
    this.#memory?.keep();
    const { answer, rest } = await this.#answer(this.baseId, queryText(body));
    this.#isWaiting = false;
    this.#memory?.[Symbol.dispose]();
    this.#memory = undefined;
    this.#socket.write(answers.row(JSON.stringify(answer)));
    await rest;
  }

  async #authenticate(body: Buffer): Promise<void> {
    const { strangers, network, place } = this.#stranger;
    if (!this.#scram) {
      const { mechanism, data } = saslInitial(body);
      const mayAsk = strangers.mayLookUp(network, this.#user);
      const access = mayAsk ? await this.#options.accessOf(this.#user) : undefined;
      if (access === undefined) {
        if (mayAsk) strangers.countUnknown(network);
        return this.#refuse();
      }
      this.#accountId = access.accountId;
      this.#scram = mechanism === SCRAM_MECHANISM ? beginScram(data, access.secret) : undefined;
      if (!this.#scram) throw new ProtocolError("a malformed SASL message");
      this.#socket.write(answers.sasl("continue", this.#scram.challenge));
      return;
    }
    const proof = this.#scram.finish(body.toString("utf8"));
    if (!proof) {
      strangers.countWrong(network, this.#user);
      return this.#refuse();
    }
    if (!this.#rest(this.#user)) return this.#fail("53300", "too many connections of this base or account");
    strangers.authenticated(this.#user);
    place[Symbol.dispose]();
    this.baseId = this.#user;
    this.#reader.isKnown = true;
    this.#socket.write(Buffer.concat([answers.sasl("final", proof.final), answers.authenticated()]));
  }

  /** The bases that exist are not distinguished: their ids cannot be guessed. */
  #refuse(): void {
    const { network } = this.#stranger;
    this.#options.log.info(
      { baseId: this.#user, from: network },
      "a connection for SQL writes has another secret",
    );
    this.#fail("28P01", "the secret is not that of this base");
  }

  async #answer(baseId: string, text: string): Promise<EndpointAnswer> {
    let request: unknown;
    try {
      request = JSON.parse(text);
    } catch {
      throw new ProtocolError("a request that is no JSON");
    }
    return this.#options.answer(baseId, request, this.#gone.signal);
  }

  #fail(sqlState: string, text: string): void {
    if (!this.#socket.destroyed) this.#socket.end(answers.error(sqlState, text));
  }
}
