/**
 * Keeps a task that crashes its process from crashing one process after another: each attempt is counted before it
 * begins.
 *
 * An attempt that ends, successfully or not, clears the count. After QUARANTINED_AFTER attempts in a row whose
 * process crashed, the task is quarantined: it is not tried again until an operator requests it.
 */
import type { Db } from "../../context";

/** Of repairs, too: from then on those of the base are delayed more and more. */
export const QUARANTINED_AFTER = 3;
/**
 * Pause after an attempt began, s, doubled by each crash and each failure: until then another process may still be running
 * it.
 */
const FIRST_PAUSE_SECONDS = 60;
const MAX_PAUSE_SECONDS = 3600;

interface Task {
  task: "deletion" | "move" | "stray";
  /** The id of the base or database that the task concerns. */
  subject: string;
}

export interface QuarantinedTask extends Task {
  triedAt: Date;
}

/**
 * Runs `work` unless the task is quarantined or not due.
 *
 * @param isUrgent a caller waits for it: runs it even if it is not due
 * @param work gets the number of earlier attempts that crashed
 * @returns null if it did not run
 */
export async function attempt<T>(
  db: Db,
  { task, subject }: Task,
  isUrgent: boolean,
  work: (died: number) => Promise<T>,
): Promise<{ result: T } | null> {
  const [begun] = await db<{ unended: number }[]>`
    insert into task_attempts as t (task, subject, unended, due_at)
    values (${task}, ${subject}, 1, now() + ${FIRST_PAUSE_SECONDS} * interval '1 s')
    on conflict (task, subject) do update set unended = t.unended + 1, tried_at = now(),
      due_at = now() + least(${MAX_PAUSE_SECONDS}, ${FIRST_PAUSE_SECONDS} * power(2, t.unended)) * interval '1 s'
      where t.unended < ${QUARANTINED_AFTER} and (${isUrgent} or t.due_at <= now())
    returning unended`;
  if (!begun) return null;
  try {
    const result = await work(begun.unended - 1);
    await forgetTask(db, { task, subject });
    return { result };
  } catch (error) {
    await db`
      update task_attempts set unended = 0, failures = failures + 1, due_at = now() + least(${MAX_PAUSE_SECONDS},
        ${FIRST_PAUSE_SECONDS} * power(2, least(failures, 20))) * interval '1 s'
      where task = ${task} and subject = ${subject}`.catch(() => {});
    throw error;
  }
}

/** Forgets the attempts of a task that is done, or starts over. */
export async function forgetTask(db: Db, { task, subject }: Task): Promise<void> {
  await db`delete from task_attempts where task = ${task} and subject = ${subject}`;
}

export async function quarantinedTasks(db: Db): Promise<QuarantinedTask[]> {
  return db<QuarantinedTask[]>`
    select task, subject, tried_at as "triedAt" from task_attempts
    where unended >= ${QUARANTINED_AFTER} and due_at <= now() order by tried_at`;
}
