/**
 * The source of `first-sync`, in a process of its own: page `n` at `/n`. Ends with its standard input.
 *
 * Arguments: records, fields.
 */
import { pagesOf } from "./large-table";

const [records = 0, fields = 0] = process.argv.slice(2).map(Number);
const pageOf = pagesOf(records, fields);
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) =>
    new Response(pageOf(Number(new URL(request.url).pathname.slice(1))), {
      headers: { "content-type": "application/json" },
    }),
});
console.log(server.port);
for await (const _ of Bun.stdin.stream());
await server.stop(true);
