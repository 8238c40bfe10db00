/** The state of a proposal, and the result of each of its operations. */
import { z } from "zod";
import {
  changeSetStates,
  itemStates,
  listChangeItems,
  MOST_PROPOSED,
  proposalOf,
} from "../../../../core/control/change-sets";
import { MOST_ANSWER_BYTES, whatFits } from "../answer";
import { tool } from "../tool";

export const getProposalTool = tool({
  name: "get_proposal",
  title: "Get a proposal",
  description: "What became of a proposal: its state, why it was rejected, and the result of each operation.",
  input: z.object({
    id: z.string().max(100),
    from: z.number().int().min(0).optional().describe("`next` of an earlier answer"),
  }),
  output: z.object({
    id: z.string(),
    as_of: z.string(),
    state: z.enum(changeSetStates),
    reason: z.string().describe("Of the person who rejected it"),
    problem: z.string().describe("Why it waits, if it does"),
    expires_at: z.string().nullable(),
    operations: z.array(
      z.object({
        operation: z.number(),
        state: z.enum(itemStates),
        record: z.string().nullable(),
        error: z.string().optional(),
      }),
    ),
    is_cut: z.boolean(),
    next: z.number().nullable().describe("Number of the first operation that is left out: pass it as `from`"),
  }),
  isReadOnly: true,
  scope: "agent:propose",
  async run(call, { id, from = 0 }) {
    const { ctx, agent } = call;
    const set = await proposalOf(ctx.db, agent.id, id);
    call.baseId = set.baseId;
    const items = await listChangeItems(ctx, set.id, { from, limit: MOST_PROPOSED });
    const all = items.map(({ position, state, recordId, error }) => ({
      operation: position,
      state,
      record: recordId,
      ...(error ? { error } : {}),
    }));
    // The text has the errors once more.
    const operations = whatFits(all, MOST_ANSWER_BYTES, (one) => [one, one]);
    call.rows = operations.length;
    const counts = Object.entries(set.counts).map(([state, count]) => `${state}: ${count}`);
    const isCut = operations.length < items.length;
    const next = isCut ? items[operations.length]!.position : null;
    const failed = operations.filter(({ error }) => error);
    return {
      data: {
        id: set.id,
        as_of: new Date().toISOString(),
        state: set.state,
        reason: set.reason,
        problem: set.problem,
        expires_at: set.state === "proposed" ? set.expiresAt.toISOString() : null,
        operations,
        is_cut: isCut,
        next,
      },
      head: `${set.id} is ${set.state}. ${counts.join(", ")}${isCut ? `. Continue with from: ${next}` : ""}`,
      text: [
        ...(set.reason ? [`Reason: ${set.reason}`] : []),
        ...(set.problem ? [`It waits: ${set.problem}`] : []),
        ...failed.map(({ operation, error }) => `operations[${operation}]: ${error}`),
      ].join("\n"),
    };
  },
});
