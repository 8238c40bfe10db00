import v8 from "node:v8";
import { expect, test, vi } from "vitest";
import { readConfig } from "../../core/config";
import { closeContext, createContext } from "../../core/process";

test("a scrape does not walk the heap", async () => {
  const walks = [
    vi.spyOn(v8, "getHeapSpaceStatistics"),
    vi.spyOn(v8, "getHeapStatistics"),
    vi.spyOn(v8, "getHeapSnapshot"),
  ];
  const ctx = createContext(
    readConfig({ NODE_ENV: "test", DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", LOG_LEVEL: "error" }),
    "worker",
  );
  for (const walk of walks) walk.mockClear();
  try {
    const text = await ctx.metrics.metrics();
    expect(text).toContain("nodejs_heap_size_used_bytes");
    expect(text).not.toContain("heap_space");
    for (const walk of walks) expect(walk).not.toHaveBeenCalled();
  } finally {
    await closeContext(ctx);
  }
});
