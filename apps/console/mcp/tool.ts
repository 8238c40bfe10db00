/** What a tool is made of. */
import type { z } from "zod";
import type { ToolAnswer } from "./answer";
import type { ToolCall } from "./caller";

export interface AgentTool<Input extends z.ZodObject = z.ZodObject> {
  name: string;
  title: string;
  description: string;
  input: Input;
  output: z.ZodObject;
  /** It changes nothing. */
  isReadOnly: boolean;
  scope: "agent:read" | "agent:propose";
  /** @throws BasetideError, which the agent gets as text */
  run(call: ToolCall, input: z.infer<Input>): Promise<ToolAnswer>;
}

/** Keeps the type of the input for `run`, and gives all tools one type. */
export function tool<Input extends z.ZodObject>(made: AgentTool<Input>): AgentTool {
  return made as unknown as AgentTool;
}
