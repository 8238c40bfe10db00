/** Saves the progress of a first sync or a rebuild, often enough for someone to watch it. */
import type { Context } from "../../context";
import type { Host, Progress } from "../host";
import type { Problems } from "../state";

const PROGRESS_INTERVAL_MS = 1000;

/**
 * Saves the latest progress at once, and then at most once a second. A save that fails is logged and does not fail the
 * sync.
 */
export function progressSaver(
  ctx: Pick<Context, "log"> & { host: Pick<Host, "save"> },
  baseId: string,
  problems: Pick<Problems, "advance">,
) {
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
      .then(() => ctx.host.save(baseId, { progress, isFurther: problems.advance(progress) }))
      .catch((error) => ctx.log.debug({ error }, "saving progress failed"));
  };
  return {
    note(progress: Progress) {
      latest = progress;
      if (!timer) save();
    },
    /** Stops saving, and waits for a save that is running. */
    async end() {
      clearTimeout(timer);
      await saving;
    },
  };
}
