/**
 * A database server that a customer hosts, and so may be hostile: connections to it go through the gateway only.
 *
 * It is an object where a server of ours is a URL's text, so that no driver takes it by mistake.
 */
import type { Config } from "../config";
import type { PostgresUrl } from "../postgres-url";

export interface ServerAddress extends PostgresUrl {
  /** Which networks the address may be in. */
  allowed: Config["privateDestinations"];
}

export class ExternalServer {
  readonly address: ServerAddress;

  constructor(address: ServerAddress) {
    this.address = address;
  }

  /** Tells one login from another; holds no password. */
  get key(): string {
    const { user, host, port, database } = this.address;
    return JSON.stringify([host, port, database, user]);
  }
}

/** Where to connect: a URL is one of our own servers, anything else goes through the gateway. */
export type ServerUrl = string | ExternalServer;
