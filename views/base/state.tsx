/** The indicator of a base: a colour, a shape (from the stylesheet) and a word that say the same, and the reason. */
import type { Indicator } from "../../core/control/status";

const words = { green: "In sync", yellow: "Behind", red: "Failing" } as const;

interface StateProps {
  indicator: Indicator;
  state: string;
  /** Are its changes read as the source tells of them? */
  isLive: boolean;
  /** Is a change of the word to be read out? For one of them on a page. */
  isAnnounced?: boolean;
}

/** With the reason on hover; for who has no mouse it is said too, but not shown. */
export function StateBadge({ isAnnounced, ...props }: StateProps) {
  const { indicator } = props;
  const word = stateWord(props);
  return (
    <span class={`badge state ${indicator.color}`} title={indicator.reason}>
      {isAnnounced ? <span role="status">{word}</span> : word}
      <span class="visually-hidden">: {indicator.reason}</span>
    </span>
  );
}

function stateWord({ indicator, state, isLive }: Omit<StateProps, "isAnnounced">): string {
  if (state === "paused") return "Paused";
  if (state === "deleting") return "Being deleted";
  if (state === "starting" && indicator.color === "green") return "First sync";
  if (state === "needs_attention") return "Needs attention";
  return isLive && indicator.color === "green" ? "Live" : words[indicator.color];
}
