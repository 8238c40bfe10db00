/** When the source's monthly caps on calls are counted anew: the first of the next month, UTC. */
export function nextMonth(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
}
