/** The frame of the pages before sign-in: one card with one form. */
import type { ComponentChildren } from "preact";
import { PageHead } from "../components";

export function AuthFrame(props: {
  title: string;
  lead?: ComponentChildren;
  /** Other links, below the card. */
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

/** Adds the page to open next to a path, unless it is the default. */
export function withNext(path: string, next: string): string {
  return next === "/" ? path : `${path}?${new URLSearchParams({ next })}`;
}
