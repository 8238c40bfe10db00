/**
 * Values over time as a picture: a bar each, the latest at the right.
 *
 * A picture is one image to a screen reader, with `summary` as its text: say where the numbers are to be read. It is
 * drawn without a `style` attribute, which the Content-Security-Policy forbids.
 */

/** Units of the drawing; the stylesheet says how large that is. */
const HEIGHT = 100;
const SLOT = 10;
const GAP = 2;
/** A value that is there is seen, however small. */
const MIN_BAR = 2;

export interface Bar {
  key: string;
  /** From the bottom up; each part with the class that colours it. */
  parts: { value: number; class: string }[];
  /** Shown on hover. */
  title: string;
}

export interface BarsProps {
  summary: string;
  bars: Bar[];
  /** How many bars the picture has room for: fewer stay at the right. */
  slots: number;
  /** The value at the upper edge. */
  top: number;
  /** A value to compare with: a line across. */
  line?: number | undefined;
}

export function Bars({ summary, bars, slots, top, line }: BarsProps) {
  const shown = bars.slice(-slots);
  const width = slots * SLOT;
  const scale = top > 0 ? HEIGHT / top : 0;
  return (
    <svg
      class="bars"
      role="img"
      aria-label={summary}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      {shown.map((bar, index) => (
        <Column key={bar.key} bar={bar} x={width - (shown.length - index) * SLOT} scale={scale} />
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

function Column({ bar, x, scale }: { bar: Bar; x: number; scale: number }) {
  let y = HEIGHT;
  return (
    <g>
      <title>{bar.title}</title>
      {/* All of the column's height answers to the pointer, not only the bar. */}
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
