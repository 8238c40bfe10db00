import net from "node:net";
import { expect, test } from "vitest";
import { connectPg } from "../../core/postgres";

test("a server that accepts connections and says nothing fails a start, which its supervisor repeats", async () => {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as net.AddressInfo;
    const url = `postgres://anyone:pw@127.0.0.1:${port}/any?sslmode=disable`;
    await expect(connectPg(url, "test")).rejects.toThrow(/timeout/);
  } finally {
    server.close();
  }
}, 20_000);
