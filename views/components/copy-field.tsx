/**
 * A value to copy with one click. Without JavaScript there is no button, and a click selects the whole value.
 *
 * A secret is hidden until the user shows it, by a checkbox and the stylesheet alone; it can be copied while hidden.
 */
export function CopyField(props: {
  id: string;
  label: string;
  value: string;
  isSecret?: boolean;
  /** The text in place of a hidden secret; dots unless given. */
  mask?: string;
}) {
  const { id, label, value, isSecret, mask = "••••••••••••••••" } = props;
  return (
    <div class={isSecret ? "copy secret" : "copy"}>
      <span class="copy-label" id={`${id}-label`}>
        {label}
      </span>
      <div class="copy-row">
        {isSecret ? (
          <>
            <input type="checkbox" class="reveal visually-hidden" id={`${id}-reveal`} />
            <code class="copy-value hidden-value" aria-hidden="true">
              {mask}
            </code>
          </>
        ) : null}
        {/* A long value scrolls, so the keyboard must reach it. */}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
        <code class="copy-value" id={id} tabIndex={0} role="group" aria-labelledby={`${id}-label`}>
          {value}
        </code>
        {isSecret ? (
          <label class="button quiet small" for={`${id}-reveal`}>
            <span class="when-hidden">
              Show<span class="visually-hidden"> {label}</span>
            </span>
            <span class="when-shown">
              Hide<span class="visually-hidden"> {label}</span>
            </span>
          </label>
        ) : null}
        <button type="button" class="button quiet small needs-script" data-copy={id}>
          Copy<span class="visually-hidden"> {label}</span>
        </button>
      </div>
    </div>
  );
}
