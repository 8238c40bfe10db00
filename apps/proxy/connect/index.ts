/**
 * Serves programs that can be configured with an HTTPS proxy, but not with another address: CONNECT, then TLS with a
 * certificate of this machine's authority. The requests inside are handled like any other.
 */
import { isIP } from "node:net";
import type { Context } from "../../../core/context";
import type { Listener, ListenOptions } from "../../../core/http";
import { localAuthority } from "./local-authority";
import { openTunnels, type Tunnels } from "./tunnels";

/** The longest validity of a server's certificate that all platforms accept, days; it is issued at every start. */
const CERTIFICATE_DAYS = 820;

/**
 * @param listenWith opens a port on the loopback address that serves the proxy
 * @returns undefined if `CONNECT_PORT` is not set
 * @throws BasetideError `port_taken`; Error if `DATA_DIR` is not writable
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
  // Other connections from this machine have not come through a tunnel, and belong to no client.
  const addressOf = (peer: Bun.SocketAddress) => clients.get(peer.port) ?? "unknown";
  const listener = listenWith({ tls: issue(hosts, CERTIFICATE_DAYS), addressOf });
  try {
    const tunnels = await openTunnels({ port, host, hosts, leadsTo: listener.port, clients });
    const facts = { port: tunnels.port, hosts, authorityFile: path };
    if (isNew) log.warn(facts, "CONNECT tunnels enabled; clients must trust the new certificate authority");
    else log.info(facts, "CONNECT tunnels enabled");
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
