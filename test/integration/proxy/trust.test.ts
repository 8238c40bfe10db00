/**
 * I8: what each actor can cause through the proxy. Each cell of the trust model's table (docs/security.md) is a test:
 * an actor, an effect on another account's base, and whether it happens.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { pause, updateSettings } from "../../../core/control/bases";
import { quotaUse } from "../../../core/control/budgets";
import { until } from "../../support/poll";
import { metricOf, type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

let stack: ProxyStack;

beforeAll(async () => {
  // Set: clients without the header are one network, like one client on the internet.
  stack = await proxyStack({ CLIENT_IP_HEADER: "x-client" });
});
afterAll(() => stack?.[Symbol.asyncDispose]());
afterEach(() => stack.sandbox.control.clearFaults());

const newKey = (bases: Record<string, "read" | "create">) =>
  stack.sandbox.control.createKey({
    bases,
    user: { id: `usr${crypto.randomUUID()}`, email: "x@example.com" },
  });

function newBase(): { baseId: string; recordId: string } {
  const baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [
      {
        name: "Tasks",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "Ada" } }],
      },
    ],
  });
  return { baseId, recordId: stack.sandbox.control.dump(baseId).tables[0]!.records[0]!.id };
}

interface Ask {
  key?: string | undefined;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  /** Another proxy than the stack's. */
  endpoint?: string;
}

function ask(path: string, { key, method = "GET", headers = {}, body, signal, endpoint }: Ask = {}) {
  return fetch(`${endpoint ?? stack.endpoint}/v0/${path}`, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

const patch = (baseId: string, recordId: string, name: string, key = stack.sandbox.key) =>
  ask(`${baseId}/Tasks/${recordId}`, {
    key,
    method: "PATCH",
    body: JSON.stringify({ fields: { Name: name } }),
  });

const monthOf = async (sourceBaseId: string) =>
  (await quotaUse(stack.ctx.db, { platform: "airtable", sourceBaseId })).month;

/** The requesting actor. @returns a key, or none */
const actors = {
  "without a key": async () => undefined,
  "a key that is none": async () => "patNobody.key",
  "a key of other bases": async () => newKey({ [newBase().baseId]: "create" }),
  "a key that reads the base": async (baseId: string) => {
    const key = newKey({ [baseId]: "read" });
    expect((await ask(`${baseId}/Tasks`, { key })).status).toBe(200);
    return key;
  },
  "the base's own key": async () => stack.sandbox.key,
} satisfies Record<string, (baseId: string) => Promise<string | undefined>>;

/** The results of two requests of an actor. */
const effects = {
  async "is asked of the source"(baseId: string, key: string | undefined) {
    const before = stack.sandbox.control.log(baseId).length;
    await ask(`${baseId}/Tasks`, { key });
    return stack.sandbox.control.log(baseId).length > before;
  },
  async "waits among the owner's clients"(baseId: string, key: string | undefined) {
    const granted = async () =>
      /^basetide_quota_grants_total\{kind="client"[^}]*\} (\d+)/m.exec(
        await (await fetch(`http://localhost:${stack.proxy.port}/metrics`)).text(),
      )?.[1];
    const before = await granted();
    await ask(`${baseId}/Tasks`, { key });
    return (await granted()) !== before;
  },
  async "counts in the base's month"(baseId: string, key: string | undefined) {
    const used = async () => (await monthOf(baseId)).client;
    const before = await used();
    await ask(`${baseId}/Tasks`, { key });
    // Counts are stored every ten seconds, in order: the own key's next one shows that this one would be there.
    await ask(`${baseId}/Tasks`, { key: stack.sandbox.key });
    await until(async () => (await used()) > before, { what: "the calls are counted" });
    return (await used()) > before + 1;
  },
  async "pauses the base by a 429"(baseId: string, key: string | undefined) {
    // As busy as the limit allows, within one second: the 429 may be the base's.
    await Promise.all([1, 2, 3].map(() => ask(`${baseId}/Tasks`, { key: stack.sandbox.key })));
    stack.sandbox.control.addFault({ base: baseId, kind: "rate_limited", count: 1 });
    await ask(`${baseId}/Tasks`, { key });
    const [window] = await stack.ctx.db`
      select from quota_keys where key = ${`airtable:${baseId}`}
        and blocked_until > extract(epoch from now()) * 1000 + 10000`;
    return window !== undefined;
  },
  async "is answered from a replica, by the header"(baseId: string, key: string | undefined) {
    const headers = { "x-basetide-read": "replica" };
    await ask(`${baseId}/Tasks`, { key, headers });
    const answer = await ask(`${baseId}/Tasks`, { key, headers });
    return answer.headers.get("x-basetide-answered-by") === "replica";
  },
  async "learns that the base is connected"(baseId: string, key: string | undefined) {
    const { baseId: other } = newBase();
    // The most revealing ones first: a refused key is not checked again.
    const paths = ["Tasks?offset=basetide.x", "Tasks", "Tasks/recNobody00000000"];
    for (const headers of [{}, { "x-basetide-read": "replica" }] as Record<string, string>[]) {
      for (const path of paths) {
        const [known, unknown] = await Promise.all(
          [baseId, other].map(async (id) => {
            const answer = await ask(`${id}/${path}`, { key, headers });
            const by = answer.headers.get("x-basetide-answered-by");
            return JSON.stringify([answer.status, by, await answer.json()]);
          }),
        );
        if (known !== unknown) return true;
      }
    }
    return false;
  },
} satisfies Record<string, (baseId: string, key: string | undefined) => Promise<boolean>>;

type Actor = keyof typeof actors;
type Effect = keyof typeof effects;

/** For each effect, the actors that it affects. */
const allowed: Record<Effect, Actor[]> = {
  "is asked of the source": [
    "a key that is none",
    "a key of other bases",
    "a key that reads the base",
    "the base's own key",
  ],
  "waits among the owner's clients": ["a key that reads the base", "the base's own key"],
  "counts in the base's month": ["a key that reads the base", "the base's own key"],
  "pauses the base by a 429": ["a key that reads the base", "the base's own key"],
  "is answered from a replica, by the header": ["a key that reads the base", "the base's own key"],
  "learns that the base is connected": ["a key that reads the base", "the base's own key"],
};

interface HostedSecrets {
  cluster_id: string;
  encrypted_password: string;
  encrypted_console_password: string | null;
}

describe("a client", () => {
  const cells = (Object.keys(effects) as Effect[]).flatMap((effect) =>
    (Object.keys(actors) as Actor[]).map((actor) => [actor, effect] as const),
  );

  const check = async ([actor, effect]: readonly [Actor, Effect]) => {
    const isAllowed = allowed[effect].includes(actor);
    // Foreign keys learn nothing about which accounts are connected by comparing their answers with the owner's.
    if (effect === "learns that the base is connected" && isAllowed) return;
    const { baseId } = newBase();
    const replicated = await stack.connect(baseId);
    if (effect.startsWith("is answered")) await replicated.sync();
    const key = await actors[actor](baseId);
    expect(await effects[effect](baseId, key)).toBe(isAllowed);
  };
  // Each waits until counts are stored, or until requests with unproven keys of its own base are sent.
  const waiting: Effect[] = ["counts in the base's month", "learns that the base is connected"];
  const isWaiting = ([, effect]: readonly [Actor, Effect]) => waiting.includes(effect);
  test.for(cells.filter((cell) => !isWaiting(cell)))("%s: %s", check);
  test.concurrent.for(cells.filter(isWaiting))("%s: %s", check);
});

/** An account that has connected the same source base as the owner, with a read key of its own. */
async function accountOf(baseId: string): Promise<Replicated & { key: string }> {
  const key = newKey({ [baseId]: "read" });
  const replicated = await stack.connect(baseId, key);
  await replicated.sync();
  return { ...replicated, key };
}

const accounts = {
  "whose key works": async () => {},
  "that is paused": async ({ base }: Replicated) => void (await pause(stack.managed, base)),
  "whose key was refused, and that needs attention": async ({ base, key }: Replicated & { key: string }) => {
    stack.sandbox.control.revokeKey(key);
    await stack.ctx.db`
      update bases set state = 'needs_attention', error_code = 'source_key_refused', error_message = 'x',
        error_since = now() where id = ${base.id}`;
  },
  "whose key was revoked while it rested": async ({ base, key }: Replicated & { key: string }) => {
    stack.sandbox.control.revokeKey(key);
    await stack.ctx.db`
      update bases set sync_completed_at = now() - interval '20 minutes', created_at = now() - interval '1 day'
      where id = ${base.id}`;
  },
  "whose key works, and that rested": async ({ base }: Replicated) => {
    await stack.ctx.db`
      update bases set sync_completed_at = now() - interval '20 minutes', created_at = now() - interval '1 day'
      where id = ${base.id}`;
  },
} satisfies Record<string, (account: Replicated & { key: string }) => Promise<void>>;

describe("another account with the same source base", () => {
  test.for([
    ["whose key works", true],
    ["whose key works, and that rested", true],
    ["that is paused", false],
    ["whose key was refused, and that needs attention", false],
    ["whose key was revoked while it rested", false],
  ] as const)("%s: does the replica show the owner's writes: %s", async ([account, isShown]) => {
    const { baseId, recordId } = newBase();
    const owner = await stack.connect(baseId);
    await owner.sync();
    const other = await accountOf(baseId);
    await accounts[account](other);
    for (const name of ["Salaries", "Salaries 2027"]) {
      const answer = await patch(baseId, recordId, name);
      expect([answer.status, answer.headers.get("x-basetide-sql")]).toEqual([200, null]);
      expect(await owner.rows("tasks")).toMatchObject([{ id: recordId, name }]);
    }
    expect(await other.rows("tasks")).toMatchObject([{ name: isShown ? "Salaries 2027" : "Ada" }]);
    expect(await stack.ctx.db`select from repairs where base_id = ${other.base.id}`).toHaveLength(0);
  });

  test("a base that is not shown reports it: its only account has paused it, and another key writes", async () => {
    const { baseId, recordId } = newBase();
    const owner = await stack.connect(baseId);
    await owner.sync();
    await pause(stack.managed, owner.base);
    const answer = await patch(baseId, recordId, "Eve", newKey({ [baseId]: "create" }));
    expect([answer.status, answer.headers.get("x-basetide-sql")]).toEqual([200, "pending"]);
    // The base's own key may write to it.
    const own = await patch(baseId, recordId, "Bob");
    expect([own.status, own.headers.get("x-basetide-sql")]).toEqual([200, null]);
    expect(await owner.rows("tasks")).toMatchObject([{ name: "Bob" }]);
  });

  test("the own key of a paused base is accepted at once: its first call has a client's priority", async () => {
    const { baseId } = newBase();
    const owner = await stack.connect(baseId);
    await owner.sync();
    await pause(stack.managed, owner.base);
    expect(await effects["waits among the owner's clients"](baseId, stack.sandbox.key)).toBe(true);
  });

  /** Its setting is enabled, its rows are forged, and the owner reads. */
  async function forged(settle: (other: Replicated & { key: string }) => Promise<unknown>) {
    const { baseId } = newBase();
    const owner = await stack.connect(baseId);
    const other = await accountOf(baseId);
    await updateSettings(stack.managed, other.base, { replicaReads: true });
    await stack.withOwner(other, (sql) => sql`update tasks set name = 'Pay to Mallory'`);
    await settle(other);
    return { baseId, owner, other };
  }

  const nameFrom = async (response: Response) => {
    const { records } = (await response.json()) as { records: { fields: { Name: string } }[] };
    return [response.headers.get("x-basetide-answered-by"), records[0]!.fields.Name];
  };

  test("its setting affects its own key only, and never the owner's client", async () => {
    const { baseId, other } = await forged(async () => {});
    for (let time = 0; time < 3; time++) {
      expect(await nameFrom(await ask(`${baseId}/Tasks`, { key: stack.sandbox.key }))).toEqual([null, "Ada"]);
    }
    await ask(`${baseId}/Tasks`, { key: other.key });
    await until(
      async () =>
        (await ask(`${baseId}/Tasks`, { key: other.key })).headers.get("x-basetide-answered-by") ===
        "replica",
      { what: "its own key is answered from its replica" },
    );
  });

  // Each waits for requests with unproven keys of its own base.
  test.concurrent.for([
    ["paused", (other: Replicated) => pause(stack.managed, other.base)],
    [
      "in need of attention",
      (other: Replicated) =>
        stack.ctx.db`update bases set state = 'needs_attention', error_code = 'source_key_refused',
          error_message = 'x', error_since = now() where id = ${other.base.id}`,
    ],
    [
      "writable",
      (other: Replicated) =>
        stack.ctx.db`update databases set is_writable = true where id = ${other.base.database.id}`,
    ],
    [
      "external",
      (other: Replicated) =>
        stack.ctx
          .db`update databases set cluster_id = null, encrypted_password = null, encrypted_console_password = null,
          encrypted_url = 'x', external_host = 'x', external_port = 1 where id = ${other.base.database.id}`,
    ],
    [
      "not accepted by the source for long",
      (other: Replicated) =>
        stack.ctx.db`update bases set created_at = now() - interval '1 day', key_accepted_at = null,
          sync_completed_at = now() - interval '20 minutes' where id = ${other.base.id}`,
    ],
  ] as const)(
    "its replica answers no request while it is %s, with or without the header",
    async ([what, settle]) => {
      let saved: HostedSecrets | undefined;
      const { baseId, other } = await forged(async (made) => {
        [saved] = await stack.ctx.db<HostedSecrets[]>`
        select cluster_id, encrypted_password, encrypted_console_password from databases where id = ${made.base.database.id}`;
        await settle(made);
      });
      const headers = { "x-basetide-read": "replica" };
      for (let time = 0; time < 2; time++) {
        const key = newKey({ [baseId]: "read" });
        await ask(`${baseId}/Tasks`, { key, headers });
        expect(await nameFrom(await ask(`${baseId}/Tasks`, { key, headers }))).toEqual(["source", "Ada"]);
      }
      if (what !== "external") return;
      // Restored, so that it can be deleted.
      await stack.ctx.db`
      update databases set cluster_id = ${saved!.cluster_id}, encrypted_password = ${saved!.encrypted_password},
        encrypted_console_password = ${saved!.encrypted_console_password},
        encrypted_url = null, external_host = null, external_port = null where id = ${other.base.database.id}`;
    },
  );
});

describe("unknown keys", () => {
  test("S5: neither their number nor their persistence uses the owner's quota or budget", async () => {
    // Its unknown clients would use up the limit of this network at the stack's own proxy.
    await using another = await stack.startAnother();
    const { endpoint } = another;
    const { baseId } = newBase();
    await stack.connect(baseId);
    const stop = new AbortController();
    const statuses = new Map<number, number>();
    const stranger = async (key: string | undefined) => {
      while (!stop.signal.aborted) {
        const answer = await ask(`${baseId}/Tasks`, { key, signal: stop.signal, endpoint }).catch(
          () => undefined,
        );
        if (!answer) return;
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        await answer.arrayBuffer().catch(() => {});
      }
    };
    const strangers = Array.from({ length: 40 }, (_, index) =>
      stranger(index % 2 === 0 ? undefined : `patNobody.${index}`),
    );
    const statusesOfOwner: number[] = [];
    const times: number[] = [];
    for (let call = 0; call < 12; call++) {
      const from = performance.now();
      statusesOfOwner.push((await ask(`${baseId}/Tasks`, { key: stack.sandbox.key, endpoint })).status);
      times.push(performance.now() - from);
    }
    stop.abort();
    await Promise.all(strangers);
    expect(new Set(statusesOfOwner)).toEqual(new Set([200]));
    // Five are sent at once, the others at five a second: not behind forty.
    expect(times.reduce((a, b) => a + b)).toBeLessThan(12_000);
    // Counts are stored every ten seconds.
    await until(async () => (await monthOf(baseId)).client >= 12, { what: "the owner's calls are counted" });
    expect((await monthOf(baseId)).client).toBe(12);
    expect([...statuses.keys()].sort()).toEqual([401, 429]);
    const asked = stack.sandbox.control.log(baseId).filter(({ status }) => status === 401);
    expect(asked.length).toBeLessThanOrEqual(6);
  });

  test("S10: bodies without a key are not read, and those with unknown keys are held back at the client", async () => {
    await using another = await stack.startAnother();
    const { endpoint } = another;
    const { baseId } = newBase();
    await stack.connect(baseId);
    const body = "x".repeat(15 << 20);
    const without = await ask(`${baseId}/Tasks`, { method: "POST", body, endpoint });
    expect([without.status, await without.json()]).toMatchObject([401, { sender: "proxy" }]);
    const before = process.memoryUsage.rss();
    const all = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        ask(`${baseId}/Tasks`, {
          method: "POST",
          body,
          key: `patNobody.${index}`,
          signal: AbortSignal.timeout(4000),
          endpoint,
        }).catch(() => undefined),
      ),
    );
    expect(new Set(all.map((answer) => answer?.status ?? 0)).has(200)).toBe(false);
    expect(process.memoryUsage.rss() - before).toBeLessThan(1e9);
  });

  test("a new client's first requests succeed, at once and concurrently, and the next one is equal to the owner's", async () => {
    const { baseId } = newBase();
    await stack.connect(baseId);
    const key = newKey({ [baseId]: "read" });
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask(`${baseId}/Tasks`, { key })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    // Another proxy reads it from the control plane.
    const before = await metricOf(stack, "basetide_quota_grants_total");
    expect(before).toBeGreaterThan(0);
    await until(
      async () =>
        (await stack.ctx.db`select from accepted_keys where source_base_id = ${baseId}`).length === 1,
      { what: "the key is stored" },
    );
    const [row] = await stack.ctx.db`select key_hash from accepted_keys where source_base_id = ${baseId}`;
    expect(row!.key_hash).not.toContain(key);
  });

  test("S6: a 429 of a new key neither pauses nor throttles the base", async () => {
    const { baseId } = newBase();
    await stack.connect(baseId);
    for (let time = 0; time < 3; time++) {
      stack.sandbox.control.addFault({ base: baseId, kind: "rate_limited", count: 1 });
      expect((await ask(`${baseId}/Tasks`, { key: newKey({ [baseId]: "read" }) })).status).toBe(429);
    }
    expect(await stack.ctx.db`select from quota_blocks where key = ${`airtable:${baseId}`}`).toHaveLength(0);
    expect((await ask(`${baseId}/Tasks`, { key: stack.sandbox.key })).status).toBe(200);
  });

  test("a key that the source stops accepting loses all of this with that answer", async () => {
    const { baseId } = newBase();
    const owner = await stack.connect(baseId);
    await owner.sync();
    const key = newKey({ [baseId]: "read" });
    const headers = { "x-basetide-read": "replica" };
    await ask(`${baseId}/Tasks`, { key, headers });
    stack.sandbox.control.revokeKey(key);
    expect((await ask(`${baseId}/Tasks`, { key })).status).toBe(401);
    const after = await ask(`${baseId}/Tasks`, { key, headers });
    expect([after.status, after.headers.get("x-basetide-answered-by")]).toEqual([401, null]);
    await until(
      async () =>
        (await stack.ctx.db`select from accepted_keys where source_base_id = ${baseId}`).length === 0,
      { what: "no other proxy takes it" },
    );
  });
});
