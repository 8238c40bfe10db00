/**
 * Measures the CPU time of each part of the service, and of everything else: it shows the cost of an attack even on a
 * machine that runs other programs.
 */
import { readdirSync } from "node:fs";
import { parentOf, processTimes } from "../support/process-usage";
import type { Service } from "./service";

/** Not the service: in production each of these has its own machine. */
const OTHERS = ["source", "customers' server", "attacker"];

/** CPU seconds so far, by part. */
export type CpuTimes = Record<string, number>;

/** The use of one pair's two windows: CPU seconds by part, and the duration of each window. */
export interface CpuUse {
  seconds: number;
  used: CpuTimes;
}

export interface CpuMeter {
  /** Since the last call. */
  take(): CpuUse;
  /** Processes of one of the servers. */
  processesOf(server: "replicas" | "customers' server"): number[];
}

/** @param attacker the attacking process; its children that have ended count with it */
export async function cpuMeter(service: Service, attacker: number): Promise<CpuMeter> {
  const servers = {
    "control plane": await serverPid(service, service.control.url),
    replicas: await serverPid(service, service.replicas.url),
    "customers' server": await serverPid(service, service.elsewhere.url),
  };
  let last = { at: performance.now(), times: read() };

  function read(): CpuTimes {
    const trees = cpuTrees();
    const times: CpuTimes = { attacker: trees.alone(attacker), source: trees.whole(service.sandbox.pid) };
    for (const [name, pid] of Object.entries(servers)) times[name] = trees.whole(pid);
    for (const { role, pid } of service.processes)
      times[role] = (times[role] ?? 0) + (pid === undefined ? 0 : trees.whole(pid));
    return times;
  }

  return {
    processesOf: (server) => cpuTrees().members(servers[server]),
    take() {
      const now = { at: performance.now(), times: read() };
      const used = Object.fromEntries(
        // Lower than before if a process was restarted.
        Object.entries(now.times).map(([part, time]) => [part, Math.max(0, time - (last.times[part] ?? 0))]),
      );
      const seconds = (now.at - last.at) / 1000;
      last = now;
      return { seconds, used };
    },
  };
}

/** CPU of all parts of the service, in shares of one core. */
export function ofService({ seconds, used }: CpuUse): number {
  const own = Object.entries(used).filter(([part]) => !OTHERS.includes(part));
  return own.reduce((sum, [, time]) => sum + time, 0) / seconds;
}

/** Several windows as one. */
export function together(uses: CpuUse[]): CpuUse {
  const used: CpuTimes = {};
  for (const use of uses)
    for (const [part, time] of Object.entries(use.used)) used[part] = (used[part] ?? 0) + time;
  return { seconds: uses.reduce((sum, { seconds }) => sum + seconds, 0), used };
}

/** In the table's format: `worker 8→12 %, …`, of one core. */
export function formatCpu(before: CpuUse, during: CpuUse): string {
  const percent = ({ seconds, used }: CpuUse, part: string) =>
    ((100 * (used[part] ?? 0)) / seconds).toFixed(0);
  return Object.keys(during.used)
    .map((part) => `${part} ${percent(before, part)}→${percent(during, part)} %`)
    .join(", ");
}

async function serverPid(service: Service, url: string): Promise<number> {
  const [row] = await service.pool(url)<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return parentOf(row!.pid);
}

/** Of all processes at one moment. */
function cpuTrees() {
  const all = new Map<number, { parent: number; cpu: number; ended: number }>();
  for (const name of readdirSync("/proc")) {
    const one = /^\d+$/.test(name) ? processTimes(Number(name)) : undefined;
    if (one) all.set(Number(name), one);
  }
  const alone = (pid: number) => (all.get(pid)?.cpu ?? 0) + (all.get(pid)?.ended ?? 0);
  const whole = (pid: number): number =>
    [...all].reduce((sum, [child, { parent }]) => (parent === pid ? sum + whole(child) : sum), alone(pid));
  const members = (pid: number): number[] => [
    pid,
    ...[...all].flatMap(([child, { parent }]) => (parent === pid ? members(child) : [])),
  ];
  return { alone, whole, members };
}
