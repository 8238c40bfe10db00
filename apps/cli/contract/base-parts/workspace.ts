/** `workspace`: the name of the workspace whose cap includes the base's calls; null: none. */
import { z } from "zod";
import type { AccountState } from "../state";
import type { BasePart, PartContext } from "./part";

export const workspacePart: BasePart<string | null> = {
  key: "workspace",
  schema: z.string().nullable(),
  read: ({ budget }, state) => nameOf(budget?.workspace_id, state),
  compare(wanted, { budget }, context) {
    check(wanted, context);
    const existing = nameOf(budget?.workspace_id, context.state);
    if (wanted === existing) return undefined;
    return {
      details: [`workspace: ${existing ?? "none"} -> ${wanted ?? "none"}`],
      paths: [context.path],
      change: { workspace: wanted },
    };
  },
  connect(wanted, context) {
    check(wanted, context);
    return { workspace: wanted };
  },
};

function nameOf(id: string | undefined, { workspaces }: AccountState): string | null {
  return workspaces.find((one) => one.id === id)?.name ?? null;
}

function check(name: string | null, { state, workspaces, path, problem }: PartContext): void {
  const known = state.workspaces.map((one) => one.name);
  if (name === null || known.includes(name) || workspaces.includes(name)) return;
  const listed = known.join(", ") || "none";
  problem(path, `there is no workspace ${name}. Add it under workspaces, or use one of: ${listed}`);
}
