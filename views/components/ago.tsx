/** A relative time, with the exact time on hover and for programs. */
import { ago, inUtc } from "../format";

export function Ago({ at, now }: { at: Date; now: Date }) {
  const iso = at.toISOString();
  return (
    <time dateTime={iso} title={inUtc(at, iso)}>
      {ago(at, now)}
    </time>
  );
}
