/** Limits how many queries of one agent run at once in this process. */
import { Turns } from "../../../core/async";
import { usualLimits } from "../../../core/control/agents";
import { BasetideError } from "../../../core/errors";
import { LruMap } from "../../../core/lru-map";
import type { AgentCaller } from "./caller";

/** How long another one waits, ms. */
const PATIENCE_MS = 10_000;
const turns = new Turns<string>((agentId) => limits.get(agentId) ?? usualLimits.queries);
const limits = new LruMap<string, number>(1000);

/** @throws BasetideError `busy` if as many are running as may */
export function inQueryTurn<T>({ agent }: Pick<AgentCaller, "agent">, work: () => Promise<T>): Promise<T> {
  const { id, limits: own } = agent;
  limits.set(id, own.queries);
  return turns.run(id, work, {
    patienceMs: PATIENCE_MS,
    tooLate: () =>
      new BasetideError(
        "busy",
        `This agent runs at most ${own.queries} queries at once. Try again when one has ended`,
      ),
  });
}
