/**
 * A normal tenant under attack: it writes and reads through the proxies, runs SQL on its replicas and opens the
 * console. Attacks must not affect the latency of its calls, nor the count of its calls.
 */
import { join } from "node:path";
import { until } from "../support/poll";
import { type Connected, memoryOf, type Service } from "./service";

/**
 * The source allows each base five calls a second, and the service itself makes up to three for a live base that it
 * polls: with fewer bases, the canary's reads wait for their own limit.
 */
const BASES = 13;
const RECORDS = 12;
const MEMORY_EVERY_MS = 200;
/** A budget is saved some time after the calls. */
const COUNTED_MS = 15_000;

export type Kind = "write" | "read" | "sql" | "console";

export interface CanaryPlan {
  endpoints: string[];
  key: string;
  consoleUrl: string;
  cookie: string;
  bases: { sourceBaseId: string; url: string; recordIds: string[] }[];
  processes: { name: string; port: number }[];
}

/** Of one window. */
export interface Measured {
  /** The duration of each call, ms, except while an account was being set up. */
  samples: Record<Kind, number[]>;
  failures: string[];
  failed: number;
  /** Its calls of every kind. */
  made: number;
  /** Through the proxies. */
  calls: number;
  /** The longest time that a process did not answer its health check, ms, by its name. */
  freezes: Record<string, number>;
}

export interface Window extends Measured {
  /** The highest resident memory, bytes, by the process's name. */
  memory: Record<string, number>;
}

export class Canary implements AsyncDisposable {
  #answer: ((measured: Measured) => void) | undefined;
  #memory: Record<string, number> = {};
  #calls = 0;
  #sampling: ReturnType<typeof setInterval> | undefined;

  private constructor(
    readonly service: Service,
    readonly bases: Connected[],
    readonly workspaceId: string,
  ) {}

  #child: Bun.Subprocess | undefined;

  static async start(service: Service): Promise<Canary> {
    const { victim } = service.accounts;
    const workspace = await victim.ask<{ id: string }>("POST", "workspaces", {
      name: "Canary",
      plan: "custom",
      calls_per_month: 1_000_000,
    });
    const sources = await Promise.all(
      Array.from({ length: BASES }, (_, at) => service.sourceBase(`Canary ${at}`, RECORDS)),
    );
    const key = await service.key(Object.fromEntries(sources.map(({ id }) => [id, "create"])));
    const bases = await Promise.all(
      sources.map((source) =>
        service.connect(victim, source, {
          api_key: key,
          settings: { live: true },
          workspace_id: workspace.id,
        }),
      ),
    );
    const browser = service.browser("198.51.100.7");
    const { email, password } = victim;
    await browser.post("/sign-in", { email, password, next: "/bases" });
    const plan: CanaryPlan = {
      endpoints: [service.endpoint(0), service.endpoint(1)],
      key,
      consoleUrl: service.consoleUrl,
      cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      bases: bases.map(({ source, url }) => ({ sourceBaseId: source.id, url, recordIds: source.recordIds })),
      processes: service.processes.map(({ name, port }) => ({ name, port })),
    };
    const canary = new Canary(service, bases, workspace.id);
    await canary.#begin(plan);
    return canary;
  }

  /** The pid of the process that makes the calls. */
  get pid(): number {
    return this.#child!.pid;
  }

  async #begin(plan: CanaryPlan): Promise<void> {
    let isReady = false;
    this.#child = Bun.spawn([process.execPath, join(import.meta.dirname, "canary-main.ts")], {
      env: { ...process.env, CANARY: JSON.stringify(plan) },
      stdio: ["ignore", "inherit", "inherit"],
      ipc: (message) => {
        if (message === "ready") isReady = true;
        else this.#answer?.(message as Measured);
      },
    });
    await until(() => isReady, { what: "the canary is running", timeoutMs: 20_000 });
    this.#sampling = setInterval(() => this.#sampleMemory(), MEMORY_EVERY_MS);
    this.service.onSetUp = (what) => this.#child?.send(`set-up ${what}`);
    await this.take();
  }

  /** Everything since the last call. */
  async take(order: "go on" | "pause" = "go on"): Promise<Window> {
    const measured = await new Promise<Measured>((resolve) => {
      this.#answer = resolve;
      this.#child!.send(order);
    });
    this.#calls += measured.calls;
    const memory = this.#memory;
    this.#memory = {};
    return { ...measured, memory };
  }

  /**
   * The number of its calls so far, and the count of its budget: compared while it makes none, as counting takes time.
   */
  async settle(): Promise<{ calls: number; counted: number }> {
    await this.take("pause");
    let [last, counted] = [-1, 0];
    await until(
      async () => {
        [last, counted] = [counted, await this.#clientCalls()];
        return counted >= this.#calls && counted === last;
      },
      { what: "the canary's calls are counted", timeoutMs: COUNTED_MS, intervalMs: 1000 },
    ).catch(() => {});
    await this.take();
    return { calls: this.#calls, counted };
  }

  async #clientCalls(): Promise<number> {
    const answer = await this.service.accounts.victim
      .ask<{ used: { client: number } }>("GET", `workspaces/${this.workspaceId}`)
      .catch(() => undefined);
    return answer?.used.client ?? 0;
  }

  #sampleMemory(): void {
    for (const { name, pid } of this.service.processes) {
      this.#memory[name] = Math.max(this.#memory[name] ?? 0, memoryOf(pid));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sampling);
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
  }
}
