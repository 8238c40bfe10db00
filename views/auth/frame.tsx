/** The frame of the pages before one is signed in: one card, one question. */
import type { ComponentChildren } from "preact";
import { PageHead } from "../components";

export function AuthFrame(props: {
  title: string;
  lead?: ComponentChildren;
  /** Other ways to go, below the card. */
  below?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <>
      <PageHead title={props.title} lead={props.lead} />
      <div class="card">{props.children}</div>
      {props.below ? <div class="muted small">{props.below}</div> : null}
    </>
  );
}

/** A path with what is to come after it, unless that is the usual. */
export function withNext(path: string, next: string): string {
  return next === "/" ? path : `${path}?${new URLSearchParams({ next })}`;
}
