/** A short state in a word or two; the colour only repeats what the word says. */
import type { ComponentChildren } from "preact";

export type Tone = "green" | "yellow" | "red" | "neutral";

/** @param props.title shown on hover; say it elsewhere too, for who has no mouse */
export function Badge(props: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${props.tone ?? "neutral"}`} title={props.title}>
      {props.children}
    </span>
  );
}
