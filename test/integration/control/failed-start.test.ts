import { once } from "node:events";
import net from "node:net";
import { expect, test } from "vitest";
import { startProgram } from "../../support/program";
import { scratchFolder } from "../../support/scratch";

const env = {
  DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
  SECRET_KEY: Buffer.alloc(32).toString("base64"),
};

test.concurrent.for(["start", "lingering", "stuck"])(
  "a process whose start fails ends, whatever remains open: %s",
  {
    timeout: 60_000,
  },
  async (way) => {
    await using program = startProgram("test/support/crash.ts", [way, "key", "password", "token"], env);
    expect(await Promise.race([program.exited, Bun.sleep(40_000)])).toBe(1);
    expect(program.errors()).toContain("basetide crash:");
  },
);

test.concurrent("up ends if the control plane's server accepts connections and does not answer, and says what to check", {
  timeout: 60_000,
}, async () => {
  const sockets = new Set<net.Socket>();
  const silent = net
    .createServer((socket) => void sockets.add(socket.on("error", () => {})))
    .listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as net.AddressInfo;
  try {
    await using program = startProgram("apps/up/main.ts", [], {
      ...env,
      DATABASE_URL: `postgres://nobody:secret-word@127.0.0.1:${port}/none`,
      DATA_DIR: scratchFolder("silent"),
      LOG_LEVEL: "warn",
    });
    expect(await Promise.race([program.exited, Bun.sleep(45_000)])).toBe(1);
    expect(program.errors()).toMatch(
      /^basetide up: The control-plane database cannot be reached \(control_unavailable\): .*CONNECT_TIMEOUT.* Check that DATABASE_URL/,
    );
    expect(program.errors()).not.toContain("secret-word");
  } finally {
    silent.close();
    for (const socket of sockets) socket.destroy();
  }
});
