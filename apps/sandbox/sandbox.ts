/**
 * The state and the parts of one sandbox, as passed to its handlers.
 */
import { AttachmentStore } from "./attachments";
import { Keys } from "./auth";
import { Caps } from "./caps";
import { Computed } from "./computed";
import { Faults } from "./faults";
import { Iterators } from "./iterators";
import { Latency } from "./latency";
import type { Network } from "./network";
import { PageCache } from "./page-cache";
import { KeyRateLimiter } from "./rate-limit";
import { RequestLog } from "./request-log";
import { defaultSettings, mergeSettings, type Settings, type SettingsPatch } from "./settings";
import { Store } from "./store";
import { Webhooks } from "./webhooks";

export class Sandbox {
  readonly store = new Store();
  readonly keys = new Keys();
  readonly limiter = new KeyRateLimiter();
  readonly faults = new Faults();
  readonly log = new RequestLog();
  readonly latency = new Latency();
  readonly pages = new PageCache();
  readonly computed: Computed;
  readonly attachments: AttachmentStore;
  readonly iterators: Iterators;
  readonly caps: Caps;
  readonly webhooks: Webhooks;
  /** In front of the API, if the sandbox was started with one. A reset does not change it. */
  network: Network | undefined;
  #settings: Settings = defaultSettings();

  constructor() {
    const now = () => this.store.now();
    this.computed = new Computed(now);
    this.attachments = new AttachmentStore(now);
    this.iterators = new Iterators(now, this.store.random);
    this.caps = new Caps(now);
    this.webhooks = new Webhooks(this);
  }

  get settings(): Settings {
    return this.#settings;
  }

  set(patch: SettingsPatch): Settings {
    this.#settings = mergeSettings(this.#settings, patch);
    this.store.clockOffsetMs = this.#settings.clockOffsetMs;
    this.attachments.urlLifeMs = this.#settings.attachmentUrlLifeMs;
    this.iterators.lifeMs = this.#settings.iteratorLifeMs;
    this.webhooks.clockMoved();
    return this.#settings;
  }

  /** Restores the state of a new start: no bases, the default key, default settings. */
  reset(): void {
    this.store.clear();
    this.keys.reset();
    this.limiter.reset();
    this.faults.clear();
    this.log.clear();
    this.pages.clear();
    this.attachments.clear();
    this.iterators.clear();
    this.caps.clear();
    this.webhooks.clear();
    this.set(defaultSettings());
  }
}
