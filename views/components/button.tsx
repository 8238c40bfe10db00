/** Buttons, and links that look like them. Other attributes (`hx-post`, …) are passed on. */
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";

type Kind = "primary" | "plain" | "danger" | "quiet";

interface ButtonProps extends Omit<ButtonHTMLAttributes, "size"> {
  /** Default `plain`. One primary button per page. */
  kind?: Kind;
  isSmall?: boolean;
  children: ComponentChildren;
}

/** Submits its form unless `type` says otherwise. */
export function Button({ kind = "plain", isSmall, type = "submit", children, ...rest }: ButtonProps) {
  return (
    <button {...rest} type={type} class={`button ${kind}${isSmall ? " small" : ""}`}>
      {children}
    </button>
  );
}

export function ButtonLink(props: {
  href: string;
  kind?: Kind;
  isSmall?: boolean;
  children: ComponentChildren;
}) {
  return (
    <a class={`button ${props.kind ?? "plain"}${props.isSmall ? " small" : ""}`} href={props.href}>
      {props.children}
    </a>
  );
}
