/** The badge of a base: a color, a shape (from the stylesheet) and a word with the same meaning. */
import type { BaseStatus } from "../../core/control/status";

interface StateProps {
  status: BaseStatus;
  now: Date;
  /** Screen readers announce a change of the word. For one badge on a page, with the headline next to it. */
  isAnnounced?: boolean;
}

/** Shows the cause on hover; for users without a mouse, it is also in hidden text, or next to the badge. */
export function StateBadge({ status, now, isAnnounced }: StateProps) {
  const word = badgeText(status, now);
  return (
    <span class={`badge state ${status.color}`} title={status.headline}>
      {isAnnounced ? <span role="status">{word}</span> : word}
      {isAnnounced ? null : <span class="visually-hidden">: {status.headline}</span>}
    </span>
  );
}

/** A paced base says when it goes on: `Paced · next in 57 min`. */
function badgeText({ word, nextAt }: BaseStatus, now: Date): string {
  if (word !== "Paced" || !nextAt) return word;
  const minutes = Math.ceil((nextAt.getTime() - now.getTime()) / 60_000);
  if (minutes < 1) return `${word} · next now`;
  return `${word} · next in ${minutes < 60 ? `${minutes} min` : `${Math.round(minutes / 60)} h`}`;
}
