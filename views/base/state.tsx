/** The indicator of a base: a color, a shape (from the stylesheet) and a word with the same meaning, and the reason. */
import type { Indicator } from "../../core/control/status";

const words = { green: "In sync", yellow: "Behind", red: "Failing" } as const;

interface StateProps {
  indicator: Indicator;
  state: string;
  /** Whether its changes are read from the source's feed. */
  isLive: boolean;
  /** Whether screen readers announce a change of the word. For one indicator on a page. */
  isAnnounced?: boolean;
}

/** Shows the reason on hover; for users without a mouse, it is also in hidden text. */
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
