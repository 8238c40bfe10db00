/** Connects to a customer's server: the address is checked that is connected to, and TLS is as the URL asks for it. */
import { lookup } from "node:dns/promises";
import { isIP, type Socket } from "node:net";
import tls from "node:tls";
import { kindOfAddress, whyRefused } from "../../control/address-guard";
import { liveSocket } from "../../live-socket";
import type { ServerAddress } from "../server";
import { Refusal, Violation } from "./fault";

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const YES = 0x53;
const NO = 0x4e;
/** Of `prefer`, and of those that want no certificate checked. */
const UNCHECKED_MODES = new Set(["require", "allow", "prefer"]);

/** @param signal ends whatever is under way. @throws Refusal, Violation, what the operating system or TLS throws */
export async function dial(server: ServerAddress, signal: AbortSignal): Promise<Socket> {
  let failure: unknown;
  for (const address of await addressesOf(server)) {
    try {
      const socket = await connect(address, server.port, signal);
      return await secured(socket, server, signal);
    } catch (error) {
      // Only what could not be connected to has another address tried.
      if (error instanceof Violation || error instanceof Refusal || signal.aborted) throw error;
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
    if (reason !== undefined) throw new Refusal("08001", `${host} ${reason}`);
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
  const { sslMode, sslNegotiation, host } = server;
  if (sslMode === undefined || sslMode === "disable" || sslMode === "false") return socket;
  if (sslNegotiation !== "direct") {
    const answered = eventOf(socket, "data", signal);
    socket.write(SSL_REQUEST);
    const answer = (await answered) as Buffer;
    socket.pause();
    // More than the one byte would be taken for encrypted, without being it.
    if (answer.length !== 1 || (answer[0] !== YES && answer[0] !== NO)) {
      socket.destroy();
      throw new Violation("login", "it answers the request for TLS with something else");
    }
    if (answer[0] === NO) {
      if (sslMode === "prefer") return socket;
      socket.destroy();
      throw new Refusal(
        "08001",
        `the server at ${host} does not offer TLS, and sslmode=${sslMode} asks for it`,
      );
    }
  }
  socket.removeAllListeners();
  const secure = tls.connect({
    socket,
    servername: isIP(host) ? "" : host,
    rejectUnauthorized: !UNCHECKED_MODES.has(sslMode),
    checkServerIdentity: (_name: string, certificate: tls.PeerCertificate) =>
      tls.checkServerIdentity(host, certificate),
    ...(sslNegotiation === "direct" ? { ALPNProtocols: ["postgresql"] } : {}),
  });
  await eventOf(secure, "secureConnect", signal);
  return secure;
}

/** Waits for the event; an error, an end or `signal` before it destroys the socket and throws. */
async function eventOf(socket: Socket, name: string, signal: AbortSignal): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const onClose = () => reject(new Refusal("CONNECTION_CLOSED", "the connection was closed"));
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
