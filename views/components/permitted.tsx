/**
 * What the reader of a page may do. Components ask: a form that would be refused is not shown, and neither is a link to a
 * page that would refuse, so that readers do not find out by a click. The routes refuse them all the same.
 */
import { type ComponentChildren, createContext, type FormHTMLAttributes } from "preact";
import { useContext } from "preact/hooks";

/** Whether the reader may send a form to the path, or open it. */
export type May = (method: "GET" | "POST", path: string) => boolean;

const Permitted = createContext<May>(() => true);

/** Without one, everything is permitted. */
export const PermittedProvider = Permitted.Provider;

export function useMay(): May {
  return useContext(Permitted);
}

interface FormProps extends FormHTMLAttributes {
  action: string;
  /** What it sends besides its fields. */
  values?: Record<string, string>;
}

/** A form that is posted to `action`; nothing if the reader may not send it. */
export function Form({ action, values = {}, children, ...rest }: FormProps) {
  if (!useMay()("POST", action)) return null;
  return (
    <form method="post" action={action} {...rest}>
      {Object.entries(values).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  );
}

/** A link within text; its text alone if the reader may not open the page. */
export function Link({ href, children }: { href: string; children: ComponentChildren }) {
  return useMay()("GET", href) ? <a href={href}>{children}</a> : children;
}
