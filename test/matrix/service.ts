/** The whole service in one process, as `bun run up` starts it, for one cell of the matrix. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxHandle } from "../../apps/sandbox/server";
import { Account } from "../security/account";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { type Program, startProgram } from "../support/program";

const START_MS = 120_000;
const READY = "Basetide is running.";
/** pino's number of the level. */
const ERROR = 50;
/** A server's refusal in a line of the log. Ignores time limits and deadlocks: they occur on a busy machine. */
const REFUSAL = /"code":"(?!55P03|57014|40001|40P01|08|53|57)[0-9][0-9A-Z]{4}"/;

export interface ServiceOptions {
  controlUrl: string;
  clusterUrl: string;
  sandbox: SandboxHandle;
  /** The same for each start on a control plane. */
  secretKey: string;
  /** The file with an authority that the service trusts. */
  authorityFile: string;
}

export class Service implements AsyncDisposable {
  #program: Program | undefined;
  #logs: string[] = [];
  readonly dataDir = join(tmpdir(), `basetide-matrix-${randomBytes(4).toString("hex")}`);

  private constructor(
    readonly env: Record<string, string>,
    readonly consoleUrl: string,
    readonly proxyUrl: string,
  ) {}

  /** @throws Error with the service's output if it does not start */
  static async start({
    controlUrl,
    clusterUrl,
    sandbox,
    secretKey,
    authorityFile,
  }: ServiceOptions): Promise<Service> {
    const [consolePort, proxyPort] = [await freePort(), await freePort()];
    const consoleUrl = `http://127.0.0.1:${consolePort}`;
    const service = new Service(
      {
        DATABASE_URL: controlUrl,
        REPLICA_URL: clusterUrl,
        SECRET_KEY: secretKey,
        CONSOLE_PORT: String(consolePort),
        PROXY_PORT: String(proxyPort),
        WORKER_PORT: "0",
        CONSOLE_URL: consoleUrl,
        UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=${sandbox.url}`,
        SCHEMA_POLL_SECONDS: "1",
        LOG_LEVEL: "info",
        NODE_EXTRA_CA_CERTS: authorityFile,
      },
      consoleUrl,
      `http://127.0.0.1:${proxyPort}/api.airtable.com/v0`,
    );
    service.env.DATA_DIR = service.dataDir;
    try {
      await service.#run();
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
    return service;
  }

  async #run(): Promise<void> {
    const program = startProgram("apps/up/main.ts", [], this.env);
    this.#program = program;
    let code: number | undefined;
    void program.exited.then((ended) => {
      code = ended;
    });
    const started = () => {
      if (code !== undefined) throw new Error(`Does not start: ${program.errors().trim()}`);
      return program.output().includes(READY) || performance.now() > deadline;
    };
    const deadline = performance.now() + START_MS;
    await until(started, { what: "the service has started", timeoutMs: 2 * START_MS, intervalMs: 50 });
    if (!program.output().includes(READY))
      throw new Error(`Has not started: ${program.errors()}${program.output().slice(-2000)}`);
  }

  /** Stops the service as a deployment does, and starts it again. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.#run();
  }

  async #stop(): Promise<void> {
    const program = this.#program;
    if (!program) return;
    program.kill("SIGTERM");
    await Promise.race([program.exited, Bun.sleep(START_MS)]);
    await program[Symbol.asyncDispose]();
    this.#logs.push(...program.output().split("\n"));
    this.#program = undefined;
  }

  /** Lines of its log that are errors, or report a server's refusal. */
  complaints(): string[] {
    const lines = [...this.#logs, ...(this.#program?.output().split("\n") ?? [])];
    return lines.filter((line) => {
      const level = /^\{"level":(\d+)/.exec(line)?.[1];
      return level !== undefined && (Number(level) >= ERROR || REFUSAL.test(line));
    });
  }

  /** Runs the operator's command line. @throws Error with its output if it fails and `mayFail` is not set */
  async operator(words: string[], { mayFail = false } = {}): Promise<string> {
    await using program = startProgram("apps/operator/main.ts", words, { ...this.env, LOG_LEVEL: "silent" });
    const code = await program.exited;
    await until(() => program.output() !== "" || program.errors() !== "", {
      what: `operator ${words[0]} answers`,
    });
    if (code !== 0 && !mayFail)
      throw new Error(`operator ${words.join(" ")}: ${program.errors()}${program.output()}`);
    return program.output();
  }

  async account(name: string): Promise<Account> {
    const email = `${name}@example.org`;
    const [command, password] = [["account", "create", "--email", email], "correct horse battery"];
    const made = await this.operator([...command, "--password", password, "--json"]);
    const { id, token } = JSON.parse(made) as { id: string; token: string };
    return new Account(id, name, email, password, token, this.consoleUrl);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}
