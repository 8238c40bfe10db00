/** Buttons, and links that look like them. Other attributes (`hx-post`, …) are passed on. */
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useMay } from "./permitted";

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

/** Nothing if the reader may not open the page. */
export function ButtonLink(props: {
  href: string;
  kind?: Kind;
  isSmall?: boolean;
  children: ComponentChildren;
}) {
  if (!useMay()("GET", props.href)) return null;
  return (
    <a class={`button ${props.kind ?? "plain"}${props.isSmall ? " small" : ""}`} href={props.href}>
      {props.children}
    </a>
  );
}
