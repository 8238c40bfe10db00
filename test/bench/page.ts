/**
 * Measures what a request for a page of 100 records costs a worker, by part, over TLS and compressed: the client's CPU
 * per request. The last page of a list, and one with attachments, are measured, too.
 *
 * Run: `bun run bench page`, with PAGE_REQUESTS (2000 per turn) and PAGE_TURNS (9); `--traced` adds a run with traces.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "../support/scratch";

export async function run(): Promise<boolean> {
  const folder = scratchFolder("page");
  const ca = join(folder, "ca.pem");
  const server = Bun.spawn([process.execPath, `${import.meta.dirname}/page-server.ts`, ca], {
    stdin: "pipe",
    stdout: "pipe",
  });
  try {
    const { value } = await server.stdout.getReader().read();
    const origin = `https://127.0.0.1:${Buffer.from(value!).toString().trim()}`;
    for (const mode of process.argv.includes("--traced") ? ["untraced", "traced"] : ["untraced"]) {
      const client = Bun.spawn([process.execPath, `${import.meta.dirname}/page-client.ts`, origin, mode], {
        env: { ...process.env, NODE_EXTRA_CA_CERTS: ca },
        stdout: "inherit",
        stderr: "inherit",
      });
      if ((await client.exited) !== 0) return false;
    }
    return true;
  } finally {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}
