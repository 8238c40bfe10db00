/** The machine's own Node, for programs of customers; `bun --bun` puts a `node` of its own before it. */
import { delimiter } from "node:path";

const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.includes("bun-node"));

/** Absent: there is none on this machine. */
export const node = Bun.which("node", { PATH: folders.join(delimiter) }) ?? undefined;
