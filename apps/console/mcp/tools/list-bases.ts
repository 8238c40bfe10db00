/** Lists the bases that an agent may read. */
import { z } from "zod";
import type { Base } from "../../../../core/control/bases";
import { freshness, freshnessLine, whatFits } from "../answer";
import { basesOf } from "../caller";
import { freshnessShape } from "../shapes";
import { tool } from "../tool";

/** The most of an answer, bytes: text and data together. */
const MOST_BYTES = 4000;

export const listBasesTool = tool({
  name: "list_bases",
  title: "List bases",
  description: "The Airtable bases that you may read by SQL, with how fresh each copy is. Start here.",
  input: z.object({}),
  output: z.object({
    bases: z.array(z.object({ id: z.string(), name: z.string(), ...freshnessShape })),
    more: z.number().describe("Bases that were left out of this answer"),
  }),
  isReadOnly: true,
  scope: "agent:read",
  async run(call) {
    const all = await basesOf(call);
    const bases = whatFits(all.map(entryOf), MOST_BYTES, ({ data, line }) => [data, line]);
    const more = all.length - bases.length;
    const lines = [...bases.map(({ line }) => line), ...(more > 0 ? [`and ${more} more`] : [])];
    return { data: { bases: bases.map(({ data }) => data), more }, text: lines.join("\n") };
  },
});

function entryOf(base: Base) {
  const facts = freshness(base);
  return {
    data: { id: base.id, name: base.name, ...facts },
    line: `${base.id}  ${base.name}  ${freshnessLine(facts)}`,
  };
}
