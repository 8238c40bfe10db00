/**
 * Short messages about what was saved. With a script they float and go away; without one they are notes at the top of
 * the page.
 */
import { Icon } from "../components/icon";

export interface Toast {
  text: string;
  /** `wrong` stays until it is closed. Default `good`. */
  tone?: "good" | "wrong" | undefined;
}

export function Toasts({ toast }: { toast: Toast | undefined }) {
  return (
    <div id="toasts" role="status">
      {toast ? <ToastView {...toast} /> : null}
    </div>
  );
}

/** In the answer to a form that htmx has sent, next to the fragment. */
export function ToastNews(toast: Toast) {
  return (
    <div id="toasts" role="status" hx-swap-oob="innerHTML">
      <ToastView {...toast} />
    </div>
  );
}

function ToastView({ text, tone = "good" }: Toast) {
  return (
    <div class={`toast ${tone}`}>
      <p>{text}</p>
      <button type="button" class="toast-close needs-script" data-close-toast>
        <Icon name="close" />
        <span class="visually-hidden">Close this message</span>
      </button>
    </div>
  );
}
