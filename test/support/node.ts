/** The machine's own Node, for customers' programs; `bun --bun` puts a `node` of its own in front of it. */
import { delimiter } from "node:path";

const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("bun-node"));

/** Absent if this machine has no Node. */
export const node = Bun.which("node", { PATH: folders.join(delimiter) }) ?? undefined;
