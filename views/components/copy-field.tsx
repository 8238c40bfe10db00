/** A value to copy with one click. Without JavaScript there is no button, and a click selects the whole value. */
export function CopyField({ id, label, value }: { id: string; label: string; value: string }) {
  return (
    <div class="copy">
      <span class="copy-label" id={`${id}-label`}>
        {label}
      </span>
      <div class="copy-row">
        {/* A long value scrolls, so the keyboard must reach it. */}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
        <code class="copy-value" id={id} tabIndex={0} role="group" aria-labelledby={`${id}-label`}>
          {value}
        </code>
        <button type="button" class="button quiet small needs-script" data-copy={id}>
          Copy<span class="visually-hidden"> {label}</span>
        </button>
      </div>
    </div>
  );
}
