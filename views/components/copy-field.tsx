/**
 * A value to take away: one click copies it. Without JavaScript there is no button, and a click selects it whole.
 *
 * A secret is hidden until it is asked for, by a checkbox and the stylesheet alone; it can be copied unseen.
 */
export function CopyField(props: {
  id: string;
  label: string;
  value: string;
  isSecret?: boolean;
  /** What is shown of a secret while it is hidden; dots unless given. */
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
        {/* A long value scrolls, so the keyboard must get there. */}
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
