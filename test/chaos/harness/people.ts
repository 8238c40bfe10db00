/**
 * The load of a chaos run: clients that write through the proxies with airtable.js, and users who edit at the source
 * and rename, create and delete fields. All of it can be paused, to check whether SQL catches up.
 */
import Airtable from "airtable";
import type { Random } from "../../../apps/sandbox/random";
import { Client } from "./client";
import type { WatchedBase } from "./watched-base";

/** A client's pause between two writes, and a user's between two edits, ms. */
const CLIENT_PAUSE_MS: [number, number] = [300, 1200];
const EDIT_PAUSE_MS: [number, number] = [80, 400];
const SHAPE_PAUSE_MS: [number, number] = [3000, 9000];
const CONTRACT_PAUSE_MS: [number, number] = [2000, 6000];
export const BEAT_MS = 500;
const CLIENT_TIMEOUT_MS = 12_000;
/** airtable.js fails on an answer that is not a list of records, and never settles its promise, ms. */
const GIVE_UP_MS = 15_000;
/** The approximate number of records of the busy table. */
const FEWEST = 40;
const MOST = 80;

export interface PeopleOptions {
  bases: WatchedBase[];
  apiKey: string;
  /** `http://127.0.0.1:port/api.airtable.com` of each proxy. */
  endpoints: string[];
  random: Random;
  /**
   * Whether nothing prevented a write that began then from being visible at once. A replica or the control plane may be
   * unreachable.
   */
  isCalm: (from: number) => boolean;
}

export class People {
  /**
   * Writes through the proxies: answered with 2xx, and with anything else. Of the former, those whose answer said that
   * SQL did not have them yet: in total, and while nothing prevented it; all others must be visible at once.
   */
  readonly answered = { ok: 0, failed: 0, pending: 0, calmPending: 0 };
  readonly #options: PeopleOptions;
  #isOver = false;
  #pause: PromiseWithResolvers<void> | undefined;
  #busy = 0;
  #all: Promise<unknown>[] = [];
  #tokens = 0;

  constructor(options: PeopleOptions) {
    this.#options = options;
  }

  start(): void {
    for (const base of this.#options.bases) {
      const clients = this.#options.endpoints.map((_, number) =>
        this.#forever(CLIENT_PAUSE_MS, () => this.#write(base, number)),
      );
      this.#all.push(
        ...clients,
        this.#forever(EDIT_PAUSE_MS, () => this.#edit(base)),
        this.#forever(SHAPE_PAUSE_MS, () => this.#reshape(base)),
        this.#forever(CONTRACT_PAUSE_MS, () => this.#changeContract(base)),
        this.#forever([BEAT_MS, BEAT_MS], () => this.#beat(base)),
      );
    }
  }

  /** Resolves when the last write has been answered. No writes happen until `resume`. */
  async pause(): Promise<void> {
    this.#pause ??= Promise.withResolvers();
    while (this.#busy > 0) await Bun.sleep(5);
  }

  resume(): void {
    this.#pause?.resolve();
    this.#pause = undefined;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.resume();
    await Promise.all(this.#all);
  }

  async #forever([minMs, maxMs]: [number, number], work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await Bun.sleep(minMs + Math.random() * (maxMs - minMs));
      await this.#pause?.promise;
      this.#busy++;
      // The record was just deleted by another user, or the proxy is dead: nothing was written, or no client was told
      // so.
      await Promise.race([work(), Bun.sleep(GIVE_UP_MS)]).catch(() => {});
      this.#busy--;
    }
  }

  #newToken(): string {
    return `t${++this.#tokens} ${crypto.randomUUID().slice(0, 8)}`;
  }

  /** One write of client `number`, through its own proxy. SQL must show what it is told. */
  async #write(base: WatchedBase, number: number): Promise<void> {
    const { random, apiKey, endpoints } = this.#options;
    const from = performance.now();
    const airtable = new Airtable({
      apiKey,
      endpointUrl: endpoints[number]!,
      requestTimeout: CLIENT_TIMEOUT_MS,
      noRetryIfRateLimited: true,
    });
    const client = new Client(airtable, base.facts.sourceBaseId);
    const table = client.table("Busy");
    const token = this.#newToken();
    const told: [string, string | undefined][] = [];
    const kind = random.next();
    try {
      if (kind < 0.5) {
        const id = random.pick(base.ids);
        await table.update(id, { Token: token });
        told.push([id, token]);
      } else if (kind < 0.65) {
        const ids = [...new Set([random.pick(base.ids), random.pick(base.ids)])];
        await table.update(ids.map((id) => ({ id, fields: { Token: token } })));
        told.push(...ids.map((id): [string, string] => [id, token]));
      } else if (kind < 0.85 ? base.ids.length < MOST : base.ids.length < FEWEST) {
        const made = await table.create([{ fields: { Token: token } }, { fields: { Token: `${token}b` } }]);
        told.push(...made.map((record): [string, string] => [record.id, String(record.get("Token"))]));
        base.ids.push(...made.map((record) => record.id));
      } else {
        const [id] = base.ids.splice(random.int(0, base.ids.length - 1), 1);
        await table.destroy(id!);
        told.push([id!, undefined]);
      }
      this.answered.ok++;
    } catch (error) {
      this.answered.failed++;
      throw error;
    }
    if (client.isPending) {
      this.answered.pending++;
      if (this.#options.isCalm(from)) this.answered.calmPending++;
      return;
    }
    for (const [id, token] of told) await base.promise(id, token);
  }

  /** One edit in the app. */
  async #edit(base: WatchedBase): Promise<void> {
    const { random } = this.#options;
    const kind = random.next();
    const at = (table: string) => `bases/${base.facts.sourceBaseId}/tables/${table}/records`;
    const fields = { Token: this.#newToken() };
    if (kind < 0.5) {
      await base.source.call("PATCH", at("Busy"), { records: [{ id: random.pick(base.ids), fields }] });
    } else if (kind < 0.6 && base.ids.length < MOST) {
      const { ids } = await base.source.call<{ ids: string[] }>("POST", at("Busy"), {
        records: [{ fields }],
      });
      base.ids.push(...ids);
    } else if (kind < 0.7 && base.ids.length > FEWEST) {
      const [id] = base.ids.splice(random.int(0, base.ids.length - 1), 1);
      await base.source.call("DELETE", at("Busy"), { ids: [id] });
    } else {
      const change = { Note: this.#newToken(), Busy: [random.pick(base.ids)] };
      await base.source.call("PATCH", at(base.sideTableId), {
        records: [{ id: random.pick(base.sideIds), fields: change }],
      });
    }
  }

  /** Creates, deletes or renames a field. */
  async #reshape(base: WatchedBase): Promise<void> {
    const { random } = this.#options;
    const kind = random.next();
    const tables = `bases/${base.facts.sourceBaseId}/tables`;
    const dump = await base.source.dump(base.facts.sourceBaseId);
    const busy = dump.tables.find((table) => table.name === "Busy")!;
    const side = dump.tables.find((table) => table.id === base.sideTableId)!;
    const shouts = busy.fields.filter(({ name }) => /^(Shout|Yell)/.test(name));
    const extras = side.fields.filter(({ name }) => name.startsWith("Extra"));
    const name = String(random.int(1, 999));
    if (kind < 0.25 && shouts.length < 4) await base.shout();
    else if (kind < 0.4 && shouts.length > 0) {
      const field = random.pick(shouts);
      const renamed = field.name.replace(/^\w+/, (word) => (word === "Yell" ? "Shout" : "Yell"));
      await base.source.call("PATCH", `${tables}/Busy/fields/${field.id}`, { name: renamed });
    } else if (kind < 0.5 && shouts.length > 2) {
      const field = random.pick(shouts);
      base.forgetShout(field.name);
      await base.source.call("DELETE", `${tables}/Busy/fields/${field.id}`);
    } else if (kind < 0.65) {
      await base.source.call("PATCH", `${tables}/${side.id}`, { name: `Side ${name}` });
    } else if (kind < 0.8 && extras.length < 4) {
      await base.source.call("POST", `${tables}/${side.id}/fields`, {
        name: `Extra ${name}`,
        type: "singleLineText",
      });
    } else if (extras.length > 0) {
      const field = random.pick(extras);
      if (kind < 0.9) await base.source.call("DELETE", `${tables}/${side.id}/fields/${field.id}`);
      else
        await base.source.call("PATCH", `${tables}/${side.id}/fields/${field.id}`, {
          name: `Extra other ${name}`,
        });
    }
  }

  #changeContract({ contract }: WatchedBase): Promise<void> {
    const { random, apiKey, endpoints } = this.#options;
    return contract.change(random, apiKey, random.pick(endpoints));
  }

  async #beat(base: WatchedBase): Promise<void> {
    const beat = ++base.lastBeat;
    base.beats.set(beat, performance.now());
    await base.source.call("PATCH", `bases/${base.facts.sourceBaseId}/tables/Pulse/records`, {
      records: [{ id: base.pulseId, fields: { Beat: beat } }],
    });
  }
}
