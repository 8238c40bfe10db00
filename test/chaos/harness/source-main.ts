/**
 * The sandbox as its own process, which also reports to its parent the history of every record's token, in the source's
 * own order, and the arrivals of requests.
 */
import { parseProfile } from "../../../apps/sandbox/network";
import { startSandbox } from "../../../apps/sandbox/server";
import type { StoreChange } from "../../../apps/sandbox/store";
import type { WireTable } from "../../support/expected-cells";
import { clockMs, watchStalls } from "../../support/stall-watch";
import type { Arrival, Arrivals, FromSource, ToSource } from "./source";
import { SourceProxies } from "./source-lines";

const TOKEN_FIELD = "Token";

const network = process.env.SANDBOX_NETWORK;
const sandbox = await startSandbox({
  port: 0,
  settings: { rateLimitOff: true },
  network: network ? parseProfile(network) : undefined,
});
const lines = new SourceProxies();
const stalls = watchStalls();
const tell = (message: FromSource) => process.send!(message);

/** By table; "" for one without tokens. */
const tokenFields = new Map<string, string>();
sandbox.control.onChange(({ baseId, events }: StoreChange) => {
  const told: [string, string][] = [];
  for (const event of events) {
    if (!("recordId" in event)) continue;
    const field = tokenFieldOf(baseId, event.tableId);
    if (field === "") continue;
    if (event.kind === "record_deleted") told.push([event.recordId, ""]);
    else {
      const token = (event.kind === "record_created" ? event.cells : event.current)[field];
      if (typeof token === "string") told.push([event.recordId, token]);
    }
  }
  if (told.length > 0) tell({ kind: "tokens", baseId, told });
});

function tokenFieldOf(baseId: string, tableId: string): string {
  const known = tokenFields.get(tableId);
  if (known !== undefined) return known;
  const tables = sandbox.control.dump(baseId).tables as unknown as WireTable[];
  const fields = tables.find((table) => table.id === tableId)?.fields ?? [];
  const id = fields.find(({ name }) => name === TOKEN_FIELD)?.id ?? "";
  tokenFields.set(tableId, id);
  return id;
}

function takeArrivals(): Arrivals {
  const offset = clockMs() - performance.now();
  const arrivals: Record<string, Arrival[]> = {};
  let refused = 0;
  for (const base of sandbox.control.bases()) {
    const entries = sandbox.control.log(base.id);
    arrivals[base.id] = entries.map(({ arrivalMs, clientPort, method, path }) => {
      const { client, keptMs } = lines.originOf(clientPort, arrivalMs);
      return {
        at: arrivalMs - keptMs + offset,
        isKept: keptMs > 0,
        from: client,
        what: `${method} ${path.replace(/^\/v0\//, "").slice(0, 60)}`,
      };
    });
    refused += entries.filter((entry) => entry.status === 429 && entry.fault === undefined).length;
  }
  sandbox.control.clearLog();
  lines.forget(performance.now());
  return { arrivals, refused, stalls: stalls.take() };
}

async function answerTo(message: ToSource): Promise<unknown> {
  if (message.kind === "take_arrivals") return takeArrivals();
  if (message.kind === "open_line") return lines.open(sandbox.port, message.client);
  return lines.change(message.port, message.change);
}

process.on("message", async (message: ToSource) => {
  const value = await answerTo(message);
  tell({ kind: "answer", id: message.id, value: value ?? null });
});
process.on("disconnect", () => process.exit(0));
const { url, authority, controlUrl, key } = sandbox;
tell({ kind: "ready", url, authority, controlUrl, key });
