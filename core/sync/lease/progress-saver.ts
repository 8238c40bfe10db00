/** Saves how far a first sync or a rebuild is, often enough to be watched. */
import type { Context } from "../../context";
import { type Progress, saveProgress } from "../../control/bases";

const PROGRESS_INTERVAL_MS = 1000;

export interface ProgressSaver {
  note(progress: Progress): void;
  /** Nothing is saved after it. */
  end(): Promise<void>;
}

/** Saves the latest progress at once, and then once a second at most. Progress that cannot be saved is no failure. */
export function progressSaver(ctx: Pick<Context, "db" | "log">, baseId: string): ProgressSaver {
  let latest: Progress | undefined;
  let saving: Promise<void> = Promise.resolve();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const save = () => {
    timer = setTimeout(() => {
      timer = undefined;
      if (latest) save();
    }, PROGRESS_INTERVAL_MS);
    const progress = latest!;
    latest = undefined;
    saving = saving
      .then(() => saveProgress(ctx.db, baseId, progress))
      .catch((error) => ctx.log.debug({ error }, "progress not saved"));
  };
  return {
    note(progress) {
      latest = progress;
      if (!timer) save();
    },
    async end() {
      clearTimeout(timer);
      await saving;
    },
  };
}
