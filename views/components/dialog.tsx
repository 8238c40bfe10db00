/**
 * A dialog that needs no script: the browser's own popover, opened by `DialogButton`, closed by Escape, a click
 * outside or its button, which gives the focus back to where it came from.
 */
import type { ComponentChildren } from "preact";

export function Dialog(props: { id: string; title: string; children: ComponentChildren }) {
  return (
    // A popover is opened without a script, a <dialog> is not.
    <div popover="auto" id={props.id} class="dialog" role="dialog" aria-labelledby={`${props.id}-title`}>
      <div class="dialog-head">
        <h2 id={`${props.id}-title`}>{props.title}</h2>
        <button type="button" class="button quiet small" popovertarget={props.id} popovertargetaction="hide">
          Close
        </button>
      </div>
      {props.children}
    </div>
  );
}

/** @param props.dialog id of the dialog that it opens */
export function DialogButton(props: {
  dialog: string;
  kind?: "primary" | "plain" | "danger" | "quiet";
  isSmall?: boolean;
  children: ComponentChildren;
}) {
  return (
    <button
      type="button"
      class={`button ${props.kind ?? "plain"}${props.isSmall ? " small" : ""}`}
      popovertarget={props.dialog}
      aria-haspopup="dialog"
    >
      {props.children}
    </button>
  );
}
