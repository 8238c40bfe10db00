/**
 * Three accounts of one service, and the possible actions of two of them: the third, the observer, works normally and
 * shares its base at the source with them. Each can break what belongs to it.
 */
import fc from "fast-check";
import type { Random } from "../../apps/sandbox/random";
import { settingList } from "../../core/control/bases";
import type { Account } from "./account";
import { type OwnDatabase, ownDatabase } from "./attacks/hostile-postgres";
import { type HostileServer, hostileServer, MODES } from "./attacks/hostile-server";
import type { CallAnswer, Connected, Service, SourceBase } from "./service";

const SETTINGS = settingList.filter(({ type }) => type === "boolean").map(({ name }) => name);
const KEYS = ["read", "write", "own base's", "revoked", "garbage", "none"] as const;
const PLANS = ["free", "team", "business", "custom"] as const;
const FAILURES = [
  "revoke key",
  "new key",
  "database turns",
  "database is well",
  "spend quota",
  "delete base",
  "rotate credentials",
] as const;
const CALLS = [
  "list",
  "record",
  "replica",
  "offset",
  "create",
  "update",
  "delete",
  "schema",
  "other base",
] as const;
/** Their own problems may make them wait, but not the run. */
const PATIENCE_MS = 6000;

/** Which of the two, and which of their bases: the one that is shared with the observer, or their own. */
const whose = { actor: fc.nat(1), isShared: fc.boolean() };

/** Settings that let data out of a base: each is drawn more often than others. */
const TELLING = ["replica_reads", "history", "notify"] as const;

export const anyStep = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("setting"),
      ...whose,
      name: fc.oneof(fc.constantFrom(...SETTINGS), { weight: 2, arbitrary: fc.constantFrom(...TELLING) }),
      // Most are off at first.
      value: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.constant(false)),
    }),
  },
  fc.record({
    kind: fc.constant("plan"),
    ...whose,
    plan: fc.constantFrom(...PLANS),
    calls: fc.integer({ min: 1, max: 4 }),
  }),
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("failure"),
      ...whose,
      what: fc.constantFrom(...FAILURES),
      mode: fc.constantFrom(...MODES),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("requests"),
      ...whose,
      key: fc.constantFrom(...KEYS),
      call: fc.constantFrom(...CALLS),
      times: fc.integer({ min: 1, max: 8 }),
    }),
  },
);
export type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;
type StepOf<Kind> = Extract<Step, { kind: Kind }>;

interface Actor {
  account: Account;
  /** Their own base at the source, and keys for it and for the shared one. */
  own: SourceBase;
  keys: Record<(typeof KEYS)[number], string | undefined>;
  bases: { shared: Connected; own: Connected };
  server: HostileServer;
  database: OwnDatabase;
}

export class World implements AsyncDisposable {
  /** Calls to the shared base that the source may have served, except the observer's. */
  served = 0;

  private constructor(
    readonly service: Service,
    readonly shared: SourceBase,
    readonly observer: Connected,
    readonly observerKey: string,
    readonly actors: Actor[],
  ) {}

  static async make(service: Service, random: Random): Promise<World> {
    const { victim, mallory, third } = service.accounts;
    const shared = await linkedBase(service, "Shared");
    const observerKey = await service.key({ [shared.id]: "create" });
    const [observer, ...actors] = await Promise.all([
      service.connect(victim, shared, { api_key: observerKey, settings: { live: true, turbo: true } }),
      makeActor(service, mallory, shared, random),
      makeActor(service, third, shared, random),
    ]);
    return new World(service, shared, observer, observerKey, actors);
  }

  /** Ignores errors: they concern only the actor. */
  async take(step: Step): Promise<void> {
    const actor = this.actors[step.actor]!;
    const base = step.isShared ? actor.bases.shared : actor.bases.own;
    if (step.kind === "setting")
      await actor.account.api("PATCH", `bases/${base.id}`, { [step.name]: step.value });
    else if (step.kind === "plan") await this.#plan(actor, base, step);
    else if (step.kind === "failure") await this.#fail(actor, step);
    else
      for (let time = 0; time < step.times; time++) {
        const wrong = await this.#request(actor, step, time);
        if (wrong) throw new Error(wrong);
      }
  }

  async #plan({ account }: Actor, base: Connected, { plan, calls }: StepOf<"plan">): Promise<void> {
    const workspace = await account.ask<{ id: string }>("POST", "workspaces", {
      name: `Plan ${crypto.randomUUID()}`,
      plan,
      ...(plan === "custom" ? { calls_per_month: calls * 1000 } : {}),
    });
    await account.api("PATCH", `bases/${base.id}`, { workspace_id: workspace.id });
  }

  async #fail(actor: Actor, { what, mode, isShared }: StepOf<"failure">): Promise<void> {
    const { account } = actor;
    const which = isShared ? "shared" : "own";
    const base = actor.bases[which];
    if (what === "revoke key") await this.service.sandbox.call("DELETE", "keys", { token: base.key });
    if (what === "new key") {
      const key = await this.service.key({ [base.source.id]: "read" });
      actor.bases[which] = { ...base, key };
      await account.api("PATCH", `bases/${base.id}`, { api_key: key });
    }
    if (what === "database turns") actor.server.mode = mode;
    if (what === "database is well") actor.server.mode = "pass";
    if (what === "spend quota") {
      const workspace = await account.ask<{ id: string }>("POST", "workspaces", {
        name: `Spent ${crypto.randomUUID()}`,
        plan: "custom",
        calls_per_month: 1,
      });
      await account.api("PATCH", `bases/${base.id}`, { workspace_id: workspace.id });
    }
    if (what === "delete base") await Promise.race([account.disconnect(base.id), Bun.sleep(PATIENCE_MS)]);
    if (what === "rotate credentials") await account.api("POST", `bases/${base.id}/credentials/rotate`);
  }

  /** @returns data in the answer that the key may not see */
  async #request(actor: Actor, step: StepOf<"requests">, time: number): Promise<string | undefined> {
    const key = actor.keys[step.key];
    const source = step.isShared ? this.shared : actor.own;
    const record = source.recordIds[time % source.recordIds.length];
    const at = `${source.id}/Tasks`;
    const fields = { Name: `actor ${step.actor} ${time}` };
    const [path, init] = {
      list: [at, {}],
      record: [`${at}/${record}`, {}],
      replica: [at, { headers: { "x-basetide-read": "replica" } }],
      offset: [`${at}?offset=basetide.x`, {}],
      create: [at, { method: "POST", body: { fields } }],
      update: [`${at}/${record}`, { method: "PATCH", body: { fields } }],
      // Of a missing record, so that the base does not become empty.
      delete: [`${at}/recAAAAAAAAAAAAAA`, { method: "DELETE" }],
      schema: [`meta/bases/${source.id}/tables`, {}],
      "other base": [`${source.id}%2f..%2f${actor.own.id}/Tasks`, {}],
    }[step.call] as [string, object];
    const answer = await this.service
      .call(path, key, { ...init, proxy: time, timeoutMs: PATIENCE_MS })
      .catch(() => undefined);
    const mayRead =
      step.key === "read" || step.key === "write" || (!step.isShared && step.key === "own base's");
    if (step.isShared && mayRead) this.served++;
    if (!mayRead && answer && answer.status < 300)
      return `a key that is ${step.key} got ${answer.status} for ${path}: ${answer.text.slice(0, 100)}`;
    return undefined;
  }

  /** The observer's client sends the same request to the proxy and to the source itself. */
  async observerReads(
    proxy: number,
  ): Promise<{ through: CallAnswer; direct: { status: number; text: string } }> {
    const path = `${this.shared.id}/Tasks`;
    const through = await this.service.call(path, this.observerKey, { proxy });
    const answer = await fetch(`${this.service.sandbox.url}/v0/${path}`, {
      headers: { authorization: `Bearer ${this.observerKey}` },
    });
    return { through, direct: { status: answer.status, text: await answer.text() } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { account, bases, server, database } of this.actors) {
      server.mode = "pass";
      await this.service.recover();
      for (const base of [bases.shared, bases.own])
        await Promise.race([account.disconnect(base.id), Bun.sleep(PATIENCE_MS)]);
      await server[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    }
    await this.service.disconnect(this.observer);
  }
}

/** Their copy of the shared base is in a database that they host; that of their own base is hosted for them. */
async function makeActor(
  service: Service,
  account: Account,
  shared: SourceBase,
  random: Random,
): Promise<Actor> {
  const database = await ownDatabase(service);
  const server = await hostileServer("pass", random, database.url);
  const own = await linkedBase(service, "Own");
  const [read, write, ownKey, revoked] = await Promise.all([
    service.key({ [shared.id]: "read" }),
    service.key({ [shared.id]: "edit" }),
    service.key({ [own.id]: "create" }),
    service.key({ [shared.id]: "create" }),
  ]);
  await service.sandbox.call("DELETE", "keys", { token: revoked });
  const [sharedBase, ownBase] = await Promise.all([
    service.connect(account, shared, {
      api_key: read,
      settings: { live: false },
      destination: { kind: "external", url: server.url },
    }),
    service.connect(account, own, { api_key: ownKey, settings: { live: false } }),
  ]);
  return {
    account,
    own,
    keys: { read, write, "own base's": ownKey, revoked, garbage: "patNot.AKey", none: undefined },
    bases: { shared: sharedBase, own: ownBase },
    server,
    database,
  };
}

/** `Tasks`, and `Notes` with links to them and lookups. */
async function linkedBase(service: Service, name: string): Promise<SourceBase> {
  const [table, field, link] = ["tblTasks000000000", "fldTaskName000000", "fldNoteTask000000"];
  const ids = ["recTask0000000001", "recTask0000000002", "recTask0000000003"];
  const { baseId } = (await service.sandbox.call("POST", "bases", {
    name,
    tables: [
      {
        id: table,
        name: "Tasks",
        fields: [
          { id: field, name: "Name", type: "singleLineText" },
          { name: "Amount", type: "number", options: { precision: 0 } },
        ],
        records: ids.map((id, at) => ({ id, fields: { Name: `${name} ${at}`, Amount: at } })),
      },
      {
        name: "Notes",
        fields: [
          { name: "Text", type: "singleLineText" },
          {
            id: link,
            name: "Task",
            type: "multipleRecordLinks",
            options: { linkedTableId: table, isOneWay: true },
          },
          {
            name: "Names",
            type: "multipleLookupValues",
            options: { recordLinkFieldId: link, fieldIdInLinkedTable: field },
          },
        ],
        records: ids.map((id, at) => ({ fields: { Text: `note ${at}`, Task: [id] } })),
      },
    ],
  })) as { baseId: string };
  return { id: baseId, recordIds: ids };
}
