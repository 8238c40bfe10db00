#!/usr/bin/env bash
# Node's agent sends a request on a connection whose previous request had asked to close it.
#
# Node 20 and 22, node-fetch 2.6.12, Bun 1.4.5 as the server.
#
# Behavior: With `Connection: close` in a request, the agent keeps the connection all the same, unless the answer repeats the header. Bun closes the
# connection after the answer, but does not repeat it. The next request, on the kept connection, fails: "socket hang up". A server of Node repeats it.
#
# Who meets it: Programs with node-fetch up to 2.6.12, which always sends the header, such as those on airtable.js with an older lock file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts node-fetch@2.6.12 >/dev/null
npm install --silent --no-audit --no-fund bun@1.4.5 >/dev/null
cat >bun.mjs <<'JS'
const server = Bun.serve({ port: 0, fetch: () => new Response("ok") });
console.log(server.port);
JS
cat >main.cjs <<'JS'
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const http = require("node:http");
const fetch = require("node-fetch");

async function answered(port) {
  const found = new Set();
  const many = async () => {
    for (let n = 0; n < 100; n++) {
      const answer = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text());
      found.add(await answer.catch((error) => error.message.replace(/.*reason: /, "")));
    }
  };
  await Promise.all(Array.from({ length: 10 }, many));
  return [...found].sort().join(", ");
}

(async () => {
  const own = http.createServer((_, response) => response.end("ok")).listen(0, "127.0.0.1");
  await once(own, "listening");
  console.log(`Node: ${await answered(own.address().port)}`);
  own.close();
  const bun = spawn("node_modules/.bin/bun", ["bun.mjs"], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = await once(bun.stdout, "data");
  console.log(`Bun: ${await answered(Number(port))}`);
  bun.kill();
})();
JS
seen=$(node --no-deprecation main.cjs)
expected=$(
  cat <<'END'
Node: ok
Bun: ok, socket hang up
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
