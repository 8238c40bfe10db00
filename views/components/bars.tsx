/**
 * A bar chart of values over time, the latest at the right.
 *
 * For screen readers, a chart is one image with `summary` as its text, which should say where the numbers are. It is
 * drawn without a `style` attribute, which the Content-Security-Policy forbids.
 */

import { TimedTitle, type TimeForm } from "./time";

/** Units of the drawing; the stylesheet sets its size. */
const HEIGHT = 100;
const SLOT = 10;
const GAP = 2;
/** Every value above zero is visible, however small. */
const MIN_BAR = 2;

interface Bar {
  key: string;
  /** From the bottom up; each part with the class for its color. */
  parts: { value: number; class: string }[];
  /** Shown on hover. */
  title: string;
  /** The time that the title has. */
  at?: Date;
}

interface BarsProps {
  summary: string;
  bars: Bar[];
  /** How many bars fit into the chart: fewer are aligned to the right. */
  slots: number;
  /** The value at the upper edge. */
  top: number;
  /** A value for comparison: a horizontal line. */
  line?: number | undefined;
  /** The form of times in titles. */
  timeForm?: TimeForm;
}

export function Bars({ summary, bars, slots, top, line, timeForm = "clock" }: BarsProps) {
  const shown = bars.slice(-slots);
  const width = slots * SLOT;
  const scale = top > 0 ? HEIGHT / top : 0;
  return (
    <svg
      class="bars"
      role="img"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move over its values
      tabIndex={0}
      aria-label={summary}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {shown.map((bar, index) => (
        <Column
          key={bar.key}
          bar={bar}
          x={width - (shown.length - index) * SLOT}
          scale={scale}
          form={timeForm}
        />
      ))}
      {line === undefined ? null : (
        <line
          class="bars-line"
          x1="0"
          x2={width}
          y1={round(HEIGHT - line * scale)}
          y2={round(HEIGHT - line * scale)}
        />
      )}
    </svg>
  );
}

function Column({ bar, x, scale, form }: { bar: Bar; x: number; scale: number; form: TimeForm }) {
  let y = HEIGHT;
  return (
    <g>
      <TimedTitle at={bar.at ? [bar.at] : []} form={form}>
        {bar.title}
      </TimedTitle>
      {/* The full height of the column reacts to the pointer, not only the bar. */}
      <rect class="bars-slot" x={x} y="0" width={SLOT} height={HEIGHT} />
      {bar.parts.map((part) => {
        const height = part.value > 0 ? Math.min(y, Math.max(MIN_BAR, part.value * scale)) : 0;
        y -= height;
        return height === 0 ? null : (
          <rect
            key={part.class}
            class={part.class}
            x={x + GAP / 2}
            y={round(y)}
            width={SLOT - GAP}
            height={round(height)}
          />
        );
      })}
    </g>
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
