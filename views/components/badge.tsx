/** A short state in a word or two; the color repeats what the word says. */
import type { ComponentChildren } from "preact";

export type Tone = "green" | "yellow" | "red" | "neutral";

/** @param props.title shown on hover; repeat it elsewhere for users without a mouse */
export function Badge(props: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${props.tone ?? "neutral"}`} title={props.title}>
      {props.children}
    </span>
  );
}
