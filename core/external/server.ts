/**
 * A database server that a customer hosts, and that may be hostile: connections to it always go through the gateway.
 *
 * It is an object, while our own servers are URL strings, so that no driver can connect to it by mistake.
 */
import type { Config } from "../config";
import type { PostgresUrl } from "../postgres-url";

export interface ServerAddress extends PostgresUrl {
  /** The networks that the address may be in. */
  allowed: Config["privateDestinations"];
}

export class ExternalServer {
  readonly address: ServerAddress;

  constructor(address: ServerAddress) {
    this.address = address;
  }

  /** Identifies the login; contains no password. */
  get key(): string {
    const { user, host, port, database } = this.address;
    return JSON.stringify([host, port, database, user]);
  }
}

/** Where to connect: a URL is one of our own servers, anything else goes through the gateway. */
export type ServerUrl = string | ExternalServer;
