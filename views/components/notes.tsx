/** Things to say to people: what went wrong, what has happened, that there is nothing here yet. */
import type { ComponentChildren } from "preact";

/** Read out at once. Say what to do, not only what is wrong. */
export function ErrorNote(props: { title?: string; children?: ComponentChildren }) {
  return (
    <div class="note wrong" role="alert">
      {props.title ? <p class="note-title">{props.title}</p> : null}
      {props.children ? <div>{props.children}</div> : null}
    </div>
  );
}

/** @param props.tone `good` after something was done, `info` unless given */
export function Note(props: {
  title?: string;
  tone?: "info" | "good" | "warn";
  children?: ComponentChildren;
}) {
  return (
    <div class={`note ${props.tone ?? "info"}`} role="status">
      {props.title ? <p class="note-title">{props.title}</p> : null}
      {props.children ? <div>{props.children}</div> : null}
    </div>
  );
}

/** @param props.action what to do about it: a `ButtonLink` */
export function Empty(props: { title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children ? <div class="muted">{props.children}</div> : null}
      {props.action}
    </div>
  );
}
