/**
 * Measures the CPU time (user and system) that the service spends on an attempt that it refuses, by process: sign-ins,
 * forged cookies, unknown tokens and keys, bodies that are too large.
 *
 * Every process is a separate one, as in production; a process includes its own children. Attempts come at the pace of
 * an attack. The use at rest is measured before each kind and subtracted.
 *
 * Run: `bun run bench refused`. REFUSED_ONLY selects the kinds whose name matches.
 */
import net from "node:net";
import { paced } from "../security/attack";
import { type CpuUse, cpuMeter } from "../security/cpu";
import { Service } from "../security/service";
import { table } from "./print";

const PARTS = ["console", "control plane", "proxy", "worker", "replicas", "source"];
const REST_MS = 4000;
/** The pace of an attack: a process that is never busy spends more on each request than one that is. */
const PER_SECOND = 80;
const ATTEMPTS = 800;
/** Compiles the code, and exhausts the limits. */
const WARM_UP = 200;
const WARM_UP_PER_SECOND = 400;
/** The share of attempts that may get another answer, because the window of a limit has ended. */
const MOST_OTHERS = 0.25;
/** Passwords are checked four times a second. */
const SLOW_ATTEMPTS = 24;
/** CPU that a refusal by its own limit may cost all processes, as a multiple of that of `/healthz`. */
const MOST_HEALTH_CHECKS = 2;
const TOO_LARGE = 17 * 1024 * 1024;

interface Kind {
  name: string;
  /** Statuses that count as refused. */
  expected: number;
  attempts?: number;
  /** Refused by a limit, before anything is checked: the limit of the bench applies. */
  isCheap?: boolean;
  prepare?(): Promise<unknown>;
  attempt(): Promise<number>;
}

export async function run(): Promise<boolean> {
  await using service = await Service.start({ env: { API_REQUESTS_PER_MINUTE: "30" } });
  const meter = await cpuMeter(service, process.pid);
  const only = new RegExp(process.env.REFUSED_ONLY ?? "", "i");
  const results: { kind: Kind; ms: Record<string, number> }[] = [];
  const all = await kinds(service);
  for (const kind of all.filter(({ name }, at) => at === 0 || only.test(name)))
    results.push({ kind, ms: await measure(kind, meter) });
  const sum = (ms: Record<string, number>) => PARTS.reduce((total, part) => total + ms[part]!, 0);
  const health = sum(results[0]!.ms);
  table(
    ["attempt", ...PARTS, "sum, ms", "health checks"],
    results.map(({ kind, ms }) => [
      kind.name,
      ...PARTS.map((part) => ms[part]!.toFixed(3)),
      sum(ms).toFixed(3),
      (sum(ms) / health).toFixed(1),
    ]),
  );
  return results.every(({ kind, ms }) => !kind.isCheap || sum(ms) <= MOST_HEALTH_CHECKS * health);
}

async function measure(kind: Kind, meter: Awaited<ReturnType<typeof cpuMeter>>) {
  await kind.prepare?.();
  const attempts = kind.attempts ?? ATTEMPTS;
  await paced(Array(Math.min(WARM_UP, attempts)), WARM_UP_PER_SECOND, () => kind.attempt());
  meter.take();
  await Bun.sleep(REST_MS);
  const rest = meter.take();
  let others = 0;
  await paced(Array(attempts), PER_SECOND, async () => {
    if ((await kind.attempt().catch(() => 0)) !== kind.expected) others++;
  });
  const busy = meter.take();
  if (others > MOST_OTHERS * attempts) throw new Error(`${kind.name}: ${others} of ${attempts} not refused`);
  return Object.fromEntries(PARTS.map((part) => [part, (1000 * over(part, busy, rest)) / attempts]));
}

/** CPU seconds of a part, beyond what it uses at rest. */
function over(part: string, busy: CpuUse, rest: CpuUse): number {
  return Math.max(0, (busy.used[part] ?? 0) - ((rest.used[part] ?? 0) * busy.seconds) / rest.seconds);
}

async function kinds(service: Service): Promise<Kind[]> {
  const { consoleUrl } = service;
  const { victim } = service.accounts;
  const source = await service.sourceBase("Refused");
  const api_key = await service.key({ [source.id]: "create" });
  await service.connect(victim, source, { api_key, settings: { live: false } });
  const post = (path: string, form: () => Record<string, string>, address: () => string) => async () => {
    const headers = { accept: "text/html", origin: consoleUrl, "x-client": address() };
    const body = new URLSearchParams(form());
    const options = { method: "POST", headers, body, redirect: "manual" } as const;
    return drain(await fetch(`${consoleUrl}${path}`, options));
  };
  const get = async (url: string, headers: Record<string, string>) =>
    drain(await fetch(url, { headers, redirect: "manual" }));
  const stranger = () => ({
    email: `${crypto.randomUUID()}@example.org`,
    password: "wrong password",
    next: "/",
  });
  const table = `${service.endpoint(0)}/${source.id}/Tasks`;
  return [
    { name: "health check (for comparison)", expected: 200, attempt: () => get(`${consoleUrl}/healthz`, {}) },
    {
      name: "sign-in over the client's limit",
      expected: 429,
      isCheap: true,
      attempt: post("/sign-in", stranger, () => "203.0.113.1"),
    },
    {
      name: "sign-up over the client's limit",
      expected: 429,
      isCheap: true,
      attempt: post("/signup", stranger, () => "203.0.113.2"),
    },
    {
      name: "password reset over the client's limit",
      expected: 429,
      isCheap: true,
      attempt: post("/forgot-password", stranger, () => "203.0.113.3"),
    },
    {
      name: "sign-in over the account's limit",
      expected: 429,
      prepare: () => exhaust(service),
      attempt: post("/sign-in", () => ({ ...stranger(), email: EXHAUSTED }), randomAddress),
    },
    {
      name: "wrong password",
      expected: 422,
      attempts: SLOW_ATTEMPTS,
      attempt: post("/sign-in", stranger, randomAddress),
    },
    {
      name: "page with a forged session cookie",
      expected: 303,
      attempt: () =>
        get(`${consoleUrl}/bases`, {
          accept: "text/html",
          cookie: `basetide.session_token=${crypto.randomUUID().replaceAll("-", "")}.${"A".repeat(43)}%3D`,
        }),
    },
    {
      name: "API with an unknown token",
      expected: 401,
      attempt: () => get(`${consoleUrl}/api/v1/bases`, { ...unknownToken(), "x-client": randomAddress() }),
    },
    {
      name: "API over the network's limit",
      expected: 429,
      isCheap: true,
      attempt: () => get(`${consoleUrl}/api/v1/bases`, { ...unknownToken(), "x-client": "203.0.113.4" }),
    },
    {
      name: "read with an unknown key, over the network's limit",
      expected: 429,
      isCheap: true,
      attempt: () =>
        get(table, { authorization: `Bearer pat${crypto.randomUUID()}`, "x-client": "203.0.113.5" }),
    },
    {
      name: "read with a key that was refused",
      expected: 401,
      isCheap: true,
      attempt: () => get(table, { authorization: "Bearer patRefused", "x-client": "203.0.113.6" }),
    },
    { name: "read without a key", expected: 401, isCheap: true, attempt: () => get(table, {}) },
    {
      name: "write with a body that is too large",
      expected: 413,
      attempt: () => tooLarge(service.of("proxy")[0]!.port, source.id, api_key),
    },
  ];
}

const EXHAUSTED = "exhausted@example.org";

/** As if many clients had guessed: waiting for the passwords to be checked would take long. */
async function exhaust(service: Service): Promise<void> {
  const address = () => randomAddress();
  for (let guess = 0; guess < 31; guess++)
    await service.browser(address()).post("/sign-in", { email: EXHAUSTED, password: "wrong", next: "/" });
}

function unknownToken() {
  return {
    authorization: `Bearer bt_${(crypto.randomUUID() + crypto.randomUUID()).replaceAll("-", "").slice(0, 43)}`,
  };
}

function randomAddress(): string {
  const byte = () => Math.floor(Math.random() * 254) + 1;
  return `198.${byte()}.${byte()}.${byte()}`;
}

async function drain(response: Response): Promise<number> {
  await response.arrayBuffer();
  return response.status;
}

/** Only announces its body: the answer does not wait for it. */
function tooLarge(port: number, baseId: string, key: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () =>
      socket.write(
        `POST /api.airtable.com/v0/${baseId}/Tasks HTTP/1.1\r\nHost: api.airtable.com\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${TOO_LARGE}\r\n\r\n`,
      ),
    );
    socket.on("data", (data) => {
      resolve(Number(data.toString().split(" ")[1]));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}
