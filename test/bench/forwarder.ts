/**
 * A minimal proxy, as the baseline for `proxy.ts`: forwards everything to the given address, as a stream. It also
 * serves a long answer, `/long/{megabytes}`. Prints its port, and ends with its standard input.
 */
const [address] = process.argv.slice(2);
const megabyte = new Uint8Array(1 << 20).fill(0x61);

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 255,
  fetch(request) {
    const target = request.url.slice(request.url.indexOf("/", 8));
    const megabytes = Number(/^\/v0\/long\/(\d+)/.exec(target)?.[1]);
    if (megabytes) return new Response(long(megabytes));
    const { method, headers, body, signal } = request;
    return fetch(address + target, { method, headers, body, signal, redirect: "manual", decompress: false });
  },
});
console.log(server.port);
for await (const _ of Bun.stdin.stream());
await server.stop(true);

function long(megabytes: number): ReadableStream<Uint8Array> {
  let left = megabytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(megabyte);
      else controller.close();
    },
  });
}

export {};
