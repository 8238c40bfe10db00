/** Ensures for `pg`, as `openPool` does for postgres.js, that no connection stays with a server that rejects writes. */
import { Client, type ClientConfig } from "pg";
import { isNotWritable } from "./errors";

/** Members of a client's connection that the package's types do not declare. */
interface Wire {
  stream: { destroy(error: Error): void };
  on(
    event: "parameterStatus",
    told: (status: { parameterName: string; parameterValue: string }) => void,
  ): void;
  on(event: "errorMessage", told: (error: Error) => void): void;
  on(event: "end", told: () => void): void;
}

/**
 * The client class of one pool. A client refuses a standby at login, and all are closed once one of them learns that
 * the server rejects writes. The pool opens new ones, each of which resolves the host's name again.
 */
export function primaryClients(): typeof Client {
  const wires = new Set<Wire>();
  const closeAll = () => {
    for (const wire of wires)
      wire.stream.destroy(closed("CONNECTION_CLOSED", "The server no longer accepts writes"));
  };
  return class PrimaryClient extends Client {
    constructor(config?: string | ClientConfig) {
      super(config);
      const wire = (this as unknown as { connection: Wire }).connection;
      wires.add(wire);
      wire.on("end", () => wires.delete(wire));
      wire.on("parameterStatus", ({ parameterName, parameterValue }) => {
        if (parameterName !== "in_hot_standby" || parameterValue !== "on") return;
        wire.stream.destroy(closed("25006", "The server is a standby"));
      });
      // The query that received the error must see it first.
      wire.on("errorMessage", (error) => void (isNotWritable(error) && setImmediate(closeAll)));
    }
  };
}

function closed(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
