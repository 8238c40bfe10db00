/** Shared by the tests of the sandbox's webhooks: a small base in a sandbox, and calls to its webhooks. */
import { expect } from "vitest";
import { PEOPLE, type Reply, sandboxScene } from "./sandbox-support";

export const DAY_MS = 24 * 3600 * 1000;
export const EVERYTHING = {
  options: { filters: { dataTypes: ["tableData", "tableFields", "tableMetadata"] } },
};

// Payloads are compared whole, so their shape needs no type.
export type Loose = ReturnType<typeof JSON.parse>;

export const filtered = (filters: object, includes?: object) => ({
  options: { filters: { dataTypes: ["tableData"], ...filters }, ...(includes && { includes }) },
});

/** One sandbox for a file, with a separate base for each test. */
export function webhookScene() {
  const scene = sandboxScene();

  /** Calls the base's webhooks API, or `path` below it. */
  const hooks = (method: string, path = "", body?: unknown, key?: string): Promise<Reply> =>
    scene.call(method, `/bases/${scene.baseId}/webhooks${path}`, body, key);

  async function listed(id: string, query = ""): Promise<Loose> {
    const reply = await hooks("GET", `/${id}/payloads${query}`);
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    return reply.body;
  }

  return {
    get sandbox() {
      return scene.sandbox;
    },
    get control() {
      return scene.sandbox.control;
    },
    get baseId() {
      return scene.baseId;
    },
    hooks,
    /** Creates a webhook. @returns its id */
    async made(specification: unknown = EVERYTHING, notificationUrl?: string): Promise<string> {
      const reply = await hooks("POST", "", { specification, ...(notificationUrl && { notificationUrl }) });
      expect(reply.status, JSON.stringify(reply.body)).toBe(200);
      return String(reply.body.id);
    },
    /** A page of the webhook's payloads. */
    listed,
    payloads: async (id: string): Promise<Loose[]> => (await listed(id)).payloads,
    /** One change: Bob is renamed. */
    rename: (name: string) =>
      scene.sandbox.control.updateRecords(scene.baseId, PEOPLE, [
        { id: "recBob00000000002", fields: { Name: name } },
      ]),
  };
}
