/** The pages before sign-in are one card with one form: their frame, and the fields that several of them share. */

import type { ComponentChildren } from "preact";
import { Field, PageHead } from "../components";

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

export function EmailField(props: { value: string; error: string | undefined; autofocus: boolean }) {
  return <Field label="E-mail" name="email" type="email" autocomplete="username" required {...props} />;
}

export function NewPasswordField(props: {
  /** `Password` unless given. */
  label?: string;
  hint: string;
  error: string | undefined;
  autofocus?: boolean;
}) {
  const { label = "Password", ...rest } = props;
  return (
    <Field
      label={label}
      name="password"
      type="password"
      autocomplete="new-password"
      minLength={8}
      required
      {...rest}
    />
  );
}
