/** Runs the gateway process for its parent: starts it, checks every second that it answers, and kills it if not. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appPath } from "../app-path";
import type { Report } from "./messages";

const MAIN = appPath("core/external/gateway/main.ts");
const BEAT_MS = 1000;
/**
 * Consecutive beats without an answer. Counted in beats, not in time: a parent that was itself frozen draws no
 * conclusion.
 */
const MISSED_BEATS = 3;
/** Memory of the process; idle it uses 40 MB. */
const MAX_RSS_BYTES = 512 * 1024 * 1024;
const PAGE_BYTES = 4096;
/** The environment variables that the gateway needs; none of them is a secret of ours. */
const PASSED_ON = ["PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "TZ", "TMPDIR"];

export type Death = "late" | "memory" | "exit";

export interface GatewayProcess {
  pid: number;
  socketPath: string;
  /** Resolves when it accepts connections; rejects if it dies before. */
  ready: Promise<void>;
  stop(): void;
}

interface GatewayHandlers {
  onReport(report: Extract<Report, { type: "violation" }>): void;
  /** @param suspect the connection that was being processed, or used most memory; 0 if unknown */
  onDeath(death: Death, suspect: number): void;
}

export function startGatewayProcess({ onReport, onDeath }: GatewayHandlers): GatewayProcess {
  // 0700, by mkdtemp: any process that can connect there can use the gateway.
  const folder = mkdtempSync(join(tmpdir(), "basetide-gateway-"));
  const socketPath = join(folder, "socket");
  const handPath = join(folder, "in-hand");
  writeFileSync(handPath, Buffer.alloc(4));
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => {});
  let [sent, answered, largest] = [0, 0, 0];
  let death: Death = "exit";
  let isStopped = false;
  const child = Bun.spawn([process.execPath, MAIN, socketPath, handPath], {
    env: Object.fromEntries(
      PASSED_ON.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
    ),
    stdio: ["ignore", "ignore", "ignore"],
    ipc(message: Report) {
      if (message.type === "ready") ready.resolve();
      else if (message.type === "violation") onReport(message);
      else [answered, largest] = [message.beat, message.largest];
    },
    onExit() {
      clearInterval(timer);
      const inHand = readFileSync(handPath).readUInt32LE(0);
      rmSync(folder, { recursive: true, force: true });
      ready.reject(new Error("the gateway has stopped"));
      if (!isStopped) onDeath(death, death === "memory" ? largest : inHand);
    },
  });
  child.unref();
  const kill = (why: Death) => {
    death = why;
    child.kill("SIGKILL");
  };
  const beat = () => {
    try {
      child.send({ beat: ++sent });
    } catch {
      // It is dying; its exit event handles the rest.
    }
  };
  const timer = setInterval(() => {
    if (sent - answered >= MISSED_BEATS) kill("late");
    else if (residentBytes(child.pid) > MAX_RSS_BYTES) kill("memory");
    else beat();
  }, BEAT_MS).unref();
  return {
    pid: child.pid,
    socketPath,
    ready: ready.promise,
    stop() {
      isStopped = true;
      child.kill("SIGKILL");
    },
  };
}

function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    // Not Linux, or the process has just ended.
    return 0;
  }
}
