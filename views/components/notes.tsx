/** Messages: errors, notices, and empty states. */
import type { ComponentChildren } from "preact";

/** Read out at once. Include the remedy, not only the problem. */
export function ErrorNote(props: { title?: string; children?: ComponentChildren }) {
  return (
    <div class="note wrong" role="alert">
      {props.title ? <p class="note-title">{props.title}</p> : null}
      {props.children ? <div>{props.children}</div> : null}
    </div>
  );
}

/** @param props.tone `good` after a successful action, default `info` */
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

/** @param props.action the remedy: a `ButtonLink` */
export function Empty(props: { title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children ? <div class="muted">{props.children}</div> : null}
      {props.action}
    </div>
  );
}
