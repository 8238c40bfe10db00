/** Connects to a customer's server: the address is checked that is connected to, and TLS is as the URL asks for it. */
import { lookup } from "node:dns/promises";
import { isIP, type Socket } from "node:net";
import tls from "node:tls";
import {
  kindOfAddress,
  liveSocket,
  SSL_REQUEST,
  TLS_OFFERED,
  TLS_REFUSED,
  tlsOptions,
  whyRefused,
} from "../../net";
import type { ServerAddress } from "../server";
import { GatewayRefusal, Violation } from "./fault";

/** A connection that a login may begin on. */
export interface ServerConnection {
  socket: Socket;
  /** The one that was connected to. */
  address: string;
}

/** @param signal ends whatever is under way. @throws Refusal, Violation, what the operating system or TLS throws */
export async function connectToServer(server: ServerAddress, signal: AbortSignal): Promise<ServerConnection> {
  let failure: unknown;
  for (const address of await addressesOf(server)) {
    try {
      const socket = await connect(address, server.port, signal);
      return { socket: await secured(socket, server, signal), address };
    } catch (error) {
      // Only what could not be connected to has another address tried.
      if (error instanceof Violation || error instanceof GatewayRefusal || signal.aborted) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** Looked up once: what was checked is what is connected to. */
async function addressesOf({ host, allowed }: ServerAddress): Promise<string[]> {
  const addresses = isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
  for (const address of addresses) {
    const reason = whyRefused(kindOfAddress(address), allowed);
    if (reason !== undefined) throw new GatewayRefusal("08001", `${host} ${reason}`);
  }
  return addresses;
}

async function connect(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = liveSocket();
  const opened = eventOf(socket, "connect", signal);
  socket.connect(port, address);
  await opened;
  return socket;
}

async function secured(socket: Socket, server: ServerAddress, signal: AbortSignal): Promise<Socket> {
  const { sslMode, isDirectTls, host } = server;
  if (sslMode === "disable") return socket;
  if (!isDirectTls) {
    const answered = eventOf(socket, "data", signal);
    socket.write(SSL_REQUEST);
    const answer = (await answered) as Buffer;
    socket.pause();
    // More than the one byte would be taken for encrypted, without being it.
    if (answer.length !== 1 || (answer[0] !== TLS_OFFERED && answer[0] !== TLS_REFUSED)) {
      socket.destroy();
      throw new Violation("login", "it answers the request for TLS with something else");
    }
    if (answer[0] === TLS_REFUSED) {
      if (sslMode === "prefer") return socket;
      socket.destroy();
      throw new GatewayRefusal(
        "08001",
        `the server at ${host} does not offer TLS, and sslmode=${sslMode} asks for it`,
      );
    }
  }
  socket.removeAllListeners();
  const direct = isDirectTls ? { ALPNProtocols: ["postgresql"] } : {};
  const secure = tls.connect({ socket, ...tlsOptions(server), ...direct });
  await eventOf(secure, "secureConnect", signal);
  return secure;
}

/** Waits for the event; an error, an end or `signal` before it destroys the socket and throws. */
async function eventOf(socket: Socket, name: string, signal: AbortSignal): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const onClose = () => reject(new GatewayRefusal("CONNECTION_CLOSED", "the connection was closed"));
  const onAbort = () => reject(signal.reason);
  socket.once(name, resolve).once("error", reject).once("close", onClose);
  signal.addEventListener("abort", onAbort);
  try {
    return await promise;
  } catch (error) {
    // An error that comes later has nobody to hear it.
    socket.on("error", () => {});
    socket.destroy();
    throw error;
  } finally {
    socket.off(name, resolve).off("error", reject).off("close", onClose);
    signal.removeEventListener("abort", onAbort);
  }
}
