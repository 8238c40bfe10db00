/**
 * The short form of the compatibility matrix: each version, each kind of rights and each kind of connection once. `bun
 * run matrix` runs all of it.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SandboxHandle, startSandbox } from "../../apps/sandbox/server";
import { HAS_PGBOUNCER } from "../support/servers/pgbouncer";
import { type Cell, nameOf, SHORT_CELLS } from "./cells";
import { isExpected, runCell } from "./run-cell";
import { startServers } from "./servers";

/** A cell takes about 15 s on an idle machine. */
const TIMEOUT_MS = 240_000;

let sandbox: SandboxHandle;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, settings: { rateLimitOff: true } });
});
afterAll(async () => {
  await sandbox?.stop();
});

const canRun = ({ way }: Cell) => HAS_PGBOUNCER || !way.startsWith("pgbouncer");

for (const cell of SHORT_CELLS) {
  test.skipIf(!canRun(cell)).concurrent(
    `${nameOf(cell)}: works, or is refused with the remedy`,
    async () => {
      await using servers = await startServers(cell.version);
      const outcomes = await runCell(servers, sandbox, cell);
      expect(outcomes.filter((outcome) => !isExpected(cell, outcome))).toEqual([]);
    },
    TIMEOUT_MS,
  );
}
