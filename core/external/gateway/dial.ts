/** Connects to a customer's server: checks the actual address of the connection, and uses TLS as the URL requests. */
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

/** A connection that is ready for login. */
export interface ServerConnection {
  socket: Socket;
  /** The address that was connected to. */
  address: string;
}

/**
 * @param signal aborts everything under way
 * @throws GatewayRefusal, Violation, errors of the operating system or of TLS
 */
export async function connectToServer(server: ServerAddress, signal: AbortSignal): Promise<ServerConnection> {
  let failure: unknown;
  for (const address of await addressesOf(server)) {
    try {
      const socket = await connect(address, server.port, signal);
      return { socket: await secured(socket, server, signal), address };
    } catch (error) {
      // Another address is tried only if the connection itself failed.
      if (error instanceof Violation || error instanceof GatewayRefusal || signal.aborted) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** Resolves the host once: the checked addresses are the ones connected to. */
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
    // Further bytes would be treated as encrypted although they are not.
    if (answer.length !== 1 || (answer[0] !== TLS_OFFERED && answer[0] !== TLS_REFUSED)) {
      socket.destroy();
      throw new Violation("login", "an invalid answer to the request for TLS");
    }
    if (answer[0] === TLS_REFUSED) {
      if (sslMode === "prefer") return socket;
      socket.destroy();
      throw new GatewayRefusal(
        "08001",
        `the server at ${host} does not support TLS, which sslmode=${sslMode} requires`,
      );
    }
  }
  socket.removeAllListeners();
  const direct = isDirectTls ? { ALPNProtocols: ["postgresql"] } : {};
  const secure = tls.connect({ socket, ...tlsOptions(server), ...direct });
  await eventOf(secure, "secureConnect", signal);
  return secure;
}

/** Waits for the event; on an error, an end or `signal` before it, destroys the socket and throws. */
async function eventOf(socket: Socket, name: string, signal: AbortSignal): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const onClose = () => reject(new GatewayRefusal("CONNECTION_CLOSED", "the connection was closed"));
  const onAbort = () => reject(signal.reason);
  socket.once(name, resolve).once("error", reject).once("close", onClose);
  signal.addEventListener("abort", onAbort);
  // It may have come while the host was looked up.
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } catch (error) {
    // Later errors are ignored: without a listener they would end the process.
    socket.on("error", () => {});
    socket.destroy();
    throw error;
  } finally {
    socket.off(name, resolve).off("error", reject).off("close", onClose);
    signal.removeEventListener("abort", onAbort);
  }
}
