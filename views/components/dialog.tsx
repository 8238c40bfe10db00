/** Dialogs: a page of its own without a script; with one, its content is shown over the current page. */
import type { ComponentChildren } from "preact";
import { Button, ButtonLink } from "./button";
import { Card } from "./card";
import { Form, useMay } from "./permitted";

type Kind = "primary" | "plain" | "danger" | "quiet";

/** A link to such a page; nothing if the reader may not open it. */
export function DialogLink(props: {
  href: string;
  kind?: Kind;
  isSmall?: boolean;
  title?: string;
  children: ComponentChildren;
}) {
  const { href, kind = "plain", isSmall, title } = props;
  if (!useMay()("GET", href)) return null;
  return (
    <a
      class={`button ${kind}${isSmall ? " small" : ""}`}
      href={href}
      title={title}
      hx-get={href}
      hx-target="#dialog"
      hx-swap="innerHTML"
    >
      {props.children}
    </a>
  );
}

/** The content of a dialog: a heading and a close button. */
export function DialogContent({
  title,
  children,
}: {
  title: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <>
      <div class="dialog-head">
        <h2 id="dialog-title">{title}</h2>
        <button
          type="button"
          class="button quiet small"
          popovertarget="dialog"
          popovertargetaction="hide"
          autofocus
        >
          Close
        </button>
      </div>
      {children}
    </>
  );
}

export interface Confirmation {
  /** A question with the name of the thing: `Revoke the token “deploy”?` */
  title: string;
  /** What will happen, in figures where there are any. */
  effect: ComponentChildren;
  /** What the button does: `Revoke token`. */
  button: string;
  /** Where the form is sent. */
  action: string;
  /** What the form sends. */
  values?: Record<string, string>;
  isDanger?: boolean;
  /** The page to return to. */
  back: string;
}

/** The question before something is retyped, rebuilt or deleted. @param props.isDialog else a page */
export function Confirm({ isDialog, ...props }: Confirmation & { isDialog: boolean }) {
  const { title, effect, button, action, values = {}, isDanger, back } = props;
  const content = (
    <Form action={action} class="stack" values={values}>
      <div class="effect">{effect}</div>
      <div class="actions">
        <Button kind={isDanger ? "danger" : "primary"}>{button}</Button>
        {isDialog ? (
          <button type="button" class="button plain" popovertarget="dialog" popovertargetaction="hide">
            Cancel
          </button>
        ) : (
          <ButtonLink href={back}>Cancel</ButtonLink>
        )}
      </div>
    </Form>
  );
  if (isDialog) return <DialogContent title={title}>{content}</DialogContent>;
  return (
    <Card id="confirm" title={title}>
      {content}
    </Card>
  );
}
