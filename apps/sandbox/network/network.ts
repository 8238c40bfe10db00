/**
 * A simulated network between the sandbox and its clients: a TCP relay that delays data, resets connections and closes
 * idle ones. TLS passes through it, so handshakes, resumption and keep-alive are real.
 *
 * The kernel accepts a connection at once, whatever its target. The round trip of opening it is added to its first
 * bytes: over TLS no client can tell the difference, since a client is connected only when the server has answered.
 */
import net from "node:net";
import { Random } from "../random";
import { Direction } from "./direction";
import { mergeProfile, type NetworkProfile } from "./profile";

export interface NetworkState {
  profile: NetworkProfile;
  /** Connections that the sandbox's side has open now, and the total number ever opened. */
  open: number;
  opened: number;
}

export class Network {
  #profile: NetworkProfile;
  #random: Random;
  #opened = 0;
  readonly #server: net.Server;
  readonly #connections = new Set<Connection>();
  /** The client's port, by the relay's own port towards the sandbox. */
  readonly #clientPorts = new Map<number, number>();

  private constructor(profile: NetworkProfile, target: { host: string; port: number }) {
    this.#profile = profile;
    this.#random = new Random(profile.seed);
    this.#server = net.createServer({ noDelay: true }, (near) => {
      this.#opened++;
      const connection = new Connection(near, target, this, () => this.#forget(connection));
      this.#connections.add(connection);
    });
  }

  /**
   * Opens the network's port, and connects its clients to `target`.
   *
   * @throws the system's error if the port cannot be opened
   */
  static async listen(
    profile: NetworkProfile,
    at: { host: string; port: number },
    target: { host: string; port: number },
  ): Promise<Network> {
    const network = new Network(profile, target);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    network.#server.once("error", reject).listen({ ...at, exclusive: true }, resolve);
    await promise;
    return network;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  get profile(): NetworkProfile {
    return this.#profile;
  }

  /** The client's port of a connection that reaches the sandbox from `relayPort`. */
  clientPortOf(relayPort: number): number | undefined {
    return this.#clientPorts.get(relayPort);
  }

  connected(relayPort: number, clientPort: number): void {
    this.#clientPorts.set(relayPort, clientPort);
  }

  state(): NetworkState {
    return {
      profile: this.#profile,
      open: [...this.#connections].filter(({ isClosed }) => !isClosed).length,
      opened: this.#opened,
    };
  }

  /** Changes the network for data that is sent from now on. @throws ControlError for an invalid profile */
  set(patch: Partial<NetworkProfile>): void {
    this.#profile = mergeProfile(this.#profile, patch);
    if (patch.seed !== undefined) this.#random = new Random(patch.seed);
    for (const connection of this.#connections) connection.awaitBytes();
  }

  /** The delay of the next piece of bytes in one direction, ms. */
  drawDelayMs(): number {
    const { roundTripMs, jitterMs } = this.#profile;
    if (jitterMs === 0) return roundTripMs / 2;
    return roundTripMs / 2 + (2 * this.#random.next() - 1) * jitterMs;
  }

  /** Whether the next piece of bytes resets its connection. */
  drawReset(): boolean {
    return this.#profile.resetShare > 0 && this.#random.chance(this.#profile.resetShare);
  }

  /** Resets every connection, like the restart of a device on the path. */
  resetConnections(): void {
    for (const connection of [...this.#connections]) connection.reset();
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const connection of [...this.#connections]) connection.destroy();
    await closed;
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection);
    if (connection.relayPort !== undefined) this.#clientPorts.delete(connection.relayPort);
  }
}

class Connection {
  readonly #near: net.Socket;
  readonly #far: net.Socket;
  readonly #network: Network;
  readonly #up: Direction;
  readonly #down: Direction;
  readonly #ended: () => void;
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** The sandbox's side has closed the connection: data that the client still sends is reset. */
  isClosed = false;
  /** Towards the sandbox, once connected. */
  relayPort: number | undefined;

  constructor(near: net.Socket, target: { host: string; port: number }, network: Network, ended: () => void) {
    this.#near = near;
    this.#network = network;
    this.#ended = ended;
    this.#far = net.connect({ ...target, noDelay: true }, () => {
      this.relayPort = this.#far.localPort;
      if (this.relayPort !== undefined) network.connected(this.relayPort, near.remotePort ?? 0);
    });
    this.#up = new Direction(near, this.#far);
    this.#down = new Direction(this.#far, near);
    // No jitter here: added to the first bytes, it would vary a TLS handshake more than a round trip.
    const { roundTripMs, handshakeMs } = network.profile;
    this.#up.openAt(performance.now() + roundTripMs + handshakeMs);
    near.on("data", (bytes) => {
      if (this.isClosed) this.reset();
      else this.#carry(this.#up, bytes);
    });
    this.#far.on("data", (bytes) => this.#carry(this.#down, bytes));
    near.on("error", () => {}).on("close", () => this.#leave(this.#up, this.#far));
    this.#far.on("error", () => {}).on("close", () => this.#leave(this.#down, near));
    this.awaitBytes();
  }

  /** Restarts the idle time. */
  awaitBytes(): void {
    clearTimeout(this.#idle);
    const { idleMs } = this.#network.profile;
    this.#idle = idleMs > 0 && !this.isClosed ? setTimeout(() => this.#close(), idleMs) : undefined;
  }

  reset(): void {
    this.#near.resetAndDestroy();
    this.#far.resetAndDestroy();
    this.destroy();
  }

  destroy(): void {
    clearTimeout(this.#idle);
    this.#up.stop();
    this.#down.stop();
    this.#near.destroy();
    this.#far.destroy();
    this.#ended();
  }

  #carry(direction: Direction, bytes: Buffer): void {
    if (this.#network.drawReset()) this.reset();
    else {
      this.awaitBytes();
      direction.carry(bytes, this.#network.drawDelayMs());
    }
  }

  /** Closes the connection from the sandbox's side; the client learns of it after the delay. */
  #close(): void {
    this.isClosed = true;
    this.#up.stop();
    this.#far.destroy();
  }

  /** One side has closed: the other is closed after the data that was sent before. */
  #leave(direction: Direction, other: net.Socket): void {
    clearTimeout(this.#idle);
    if (direction === this.#down) this.isClosed = true;
    if (other.destroyed) this.destroy();
    else direction.carry(undefined, this.#network.drawDelayMs());
  }
}
