/** What tests do most, for a moment: takes new memory, starts processes, and runs code. See `machine-speed.ts`. */
const PAGE_BYTES = 4096;
const MEMORY_BYTES = 64 * 2 ** 20;
const PROCESSES = 40;
const TEXTS = 60_000;

const memory = new Uint8Array(MEMORY_BYTES);
for (let at = 0; at < memory.length; at += PAGE_BYTES) memory[at] = 1;
for (let nth = 0; nth < PROCESSES; nth++) Bun.spawnSync(["true"]);
const record = {
  id: "rec00000000000001",
  fields: { Name: "a name", Notes: "a text ".repeat(30), Number: 12.5 },
};
for (let nth = 0; nth < TEXTS; nth++) JSON.parse(JSON.stringify({ ...record, nth }));
