/** What the colors of a chart mean. */

/** @param props.keys the class for each color besides `key`, and its meaning */
export function ChartKey({ keys }: { keys: { look?: string; text: string }[] }) {
  return (
    <p class="chart-key small muted">
      {keys.map(({ look, text }) => (
        <span key={text}>
          <span class={look ? `key ${look}` : "key"} aria-hidden="true" /> {text}
        </span>
      ))}
    </p>
  );
}
