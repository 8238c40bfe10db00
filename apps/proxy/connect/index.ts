/**
 * The way in for programs that can be given an HTTPS proxy, and no other address: CONNECT, and behind it TLS with a
 * certificate of an authority of this machine. What comes out of it are requests like any other.
 */
import { isIP } from "node:net";
import type { Context } from "../../../core/context";
import type { Listener, ListenOptions } from "../../../core/http";
import { localAuthority } from "./local-authority";
import { openTunnels, type Tunnels } from "./tunnels";

/** The longest that all platforms accept of a server's certificate, days; it is made at every start. */
const CERTIFICATE_DAYS = 820;

/**
 * @param listenWith opens a port of the loopback address with the proxy behind it
 * @returns undefined where `CONNECT_PORT` is not set
 * @throws BasetideError `port_taken`; Error where `DATA_DIR` cannot be written
 */
export async function startConnect(
  { config, log }: Pick<Context, "config" | "log">,
  listenWith: (options: Required<Pick<ListenOptions, "tls" | "addressOf">>) => Listener,
): Promise<Tunnels | undefined> {
  const { connectPort: port, connectHost: host } = config;
  if (port === undefined) return undefined;
  const hosts = Object.keys(config.upstreams).filter((name) => isIP(name) === 0);
  const { path, isNew, issue } = localAuthority(config.dataDir, hosts);
  const clients = new Map<number, string>();
  // What comes from elsewhere on this machine has come through no tunnel, and is nobody's.
  const addressOf = (peer: Bun.SocketAddress) => clients.get(peer.port) ?? "unknown";
  const listener = listenWith({ tls: issue(hosts, CERTIFICATE_DAYS), addressOf });
  try {
    const tunnels = await openTunnels({ port, host, hosts, leadsTo: listener.port, clients });
    const facts = { port: tunnels.port, hosts, authorityFile: path };
    if (isNew)
      log.warn(facts, "takes CONNECT requests; programs must be given the new authority's file to trust");
    else log.info(facts, "takes CONNECT requests");
    return {
      port: tunnels.port,
      async stop() {
        await tunnels.stop();
        await listener.stop();
      },
    };
  } catch (error) {
    await listener.stop();
    throw error;
  }
}
