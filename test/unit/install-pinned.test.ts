import { rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { installError } from "../support/install-pinned";
import { scratchFolder } from "../support/scratch";

test("an installation from a registry that does not answer ends, with the reason", async () => {
  const folder = scratchFolder("install", 0);
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // The kernel accepts its connections, and no answer is ever sent.
  const server = net.createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as net.AddressInfo;
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ dependencies: { "not-there-and-not-cached": "1.0.0" } }),
  );
  writeFileSync(join(folder, "bunfig.toml"), `[install]\nregistry = "http://127.0.0.1:${port}"\n`);
  expect(installError(folder, ["install"], 500)).toBe("it did not end within 500 ms, 3 times");
  expect(installError(folder, ["no-such-command"])).toContain("no-such-command");
});
