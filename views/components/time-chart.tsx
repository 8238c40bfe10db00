/**
 * A chart of values over time with an axis on the left: bars per bucket, shaded periods, markers.
 *
 * For screen readers, a chart is one image with `summary` as its text, which says where the numbers are. It is drawn
 * without a `style` attribute, which the Content-Security-Policy forbids: the axis is a drawing of a fixed size, so that
 * its text is never stretched.
 */

import type { ComponentChildren } from "preact";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/time-units";
import { inDigits } from "../format";
import { TimedTitle, type TimeForm } from "./time";

/** Units of the drawing, which is stretched to the width of the page; the height is that of the stylesheet. */
const WIDTH = 720;
const HEIGHT = 160;
const AXIS_WIDTH = 56;
/** Every value above zero is visible, however small. */
const MIN_BAR = 2;

export interface ChartBar {
  /** From the bottom up; each part with the class for its color. Parts of a range overlap, others are stacked. */
  parts: { value: number; class: string }[];
  /** Shown on hover; empty for a bucket without anything. */
  title: string;
  /** The time that the title has. */
  at?: Date;
}

/** Fractions of the width, from 0 to 1. */
export interface ChartSpan {
  from: number;
  to: number;
  class: string;
  title: string;
  /** The times that the title has. */
  times?: Date[];
}

interface ChartMarker {
  at: number;
  title: string;
  times?: Date[];
}

interface TimeChartProps {
  summary: string;
  bars: ChartBar[];
  /** Default: counts from zero to a round number. */
  scale?: ChartScale;
  /** Default `stack`; `range`: parts are drawn over each other, the first in front. */
  form?: "range" | "stack";
  spans?: ChartSpan[];
  markers?: ChartMarker[];
  /** Below the chart: from left to right. */
  foot: ComponentChildren[];
  /** The form of times in titles. */
  timeForm?: TimeForm;
}

interface ChartScale {
  /** From a value to the fraction of the height. */
  heightOf(value: number): number;
  ticks: { value: number; text: string }[];
}

export function TimeChart(props: TimeChartProps) {
  const { summary, bars, form = "stack", spans = [], markers = [], foot, timeForm = "bare" } = props;
  const { scale = countScale(bars) } = props;
  const slot = WIDTH / bars.length;
  return (
    <div class="time-chart">
      <svg class="time-axis" viewBox={`0 0 ${AXIS_WIDTH} ${HEIGHT}`} aria-hidden="true">
        {scale.ticks.map(({ value, text }) => (
          <text key={text} x={AXIS_WIDTH - 6} y={round(Math.max(9, yOf(scale, value) + 4))}>
            {text}
          </text>
        ))}
      </svg>
      <svg
        class="time-bars"
        role="img"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move over its values
        tabIndex={0}
        aria-label={summary}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {spans.map((span) => (
          <rect
            key={`${span.from} ${span.title}`}
            class={`span ${span.class}`}
            x={round(span.from * WIDTH)}
            y="0"
            width={round(Math.max(2, (span.to - span.from) * WIDTH))}
            height={HEIGHT}
          >
            <TimedTitle at={span.times ?? []} form="bareDay">
              {span.title}
            </TimedTitle>
          </rect>
        ))}
        {scale.ticks.map(({ value, text }) => (
          <path key={text} class="grid" d={`M0 ${round(yOf(scale, value))}h${WIDTH}`} />
        ))}
        {pathsOf(bars, scale, form, slot).map(([name, path]) => (
          <path key={name} class={name} d={path} />
        ))}
        {markers.map((marker) => (
          <path
            key={`${marker.at} ${marker.title}`}
            class="marker"
            d={`M${round(marker.at * WIDTH)} 0v${HEIGHT}`}
          >
            <TimedTitle at={marker.times ?? []} form={timeForm}>
              {marker.title}
            </TimedTitle>
          </path>
        ))}
        {bars.map(({ title, at }, index) =>
          title ? (
            <rect key={index} class="slot" x={round(index * slot)} y="0" width={round(slot)} height={HEIGHT}>
              <TimedTitle at={at ? [at] : []} form={timeForm}>
                {title}
              </TimedTitle>
            </rect>
          ) : null,
        )}
      </svg>
      <p class="time-foot small muted" aria-hidden="true">
        {foot.map((text, index) => (
          <span key={index}>{text}</span>
        ))}
      </p>
    </div>
  );
}

/** One path per class instead of one element per bar: a chart of 120 buckets stays small. */
function pathsOf(
  bars: ChartBar[],
  scale: ChartScale,
  form: "range" | "stack",
  slot: number,
): [string, string][] {
  const paths = new Map<string, string[]>();
  const gap = Math.min(1.5, slot / 5);
  for (const [index, bar] of bars.entries()) {
    let bottom = HEIGHT;
    // The greatest first, so that smaller ones are in front of it.
    for (const part of form === "range" ? bar.parts.toReversed() : bar.parts) {
      const path = paths.get(part.class) ?? [];
      paths.set(part.class, path);
      if (part.value <= 0) continue;
      const height = Math.min(bottom, Math.max(MIN_BAR, scale.heightOf(part.value) * HEIGHT));
      path.push(
        `M${round(index * slot + gap / 2)} ${round(bottom)}v${round(-height)}h${round(slot - gap)}V${round(bottom)}z`,
      );
      if (form === "stack") bottom -= height;
    }
  }
  return [...paths].map(([name, path]) => [name, path.join("")]);
}

function yOf(scale: ChartScale, value: number): number {
  return HEIGHT - scale.heightOf(value) * HEIGHT;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** For counts: from zero to `top`; what is more ends at the upper edge. */
export function fullScale(top: number): ChartScale {
  return { heightOf: (value) => value / top, ticks: [{ value: top, text: inDigits(top) }] };
}

function countScale(bars: ChartBar[]): ChartScale {
  const sums = bars.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0));
  const top = roundUp(Math.max(1, ...sums));
  const ticks = top === 1 ? [1] : [top / 2, top];
  return {
    heightOf: (value) => value / top,
    ticks: ticks.map((value) => ({ value, text: inDigits(value) })),
  };
}

/** 1, 2, 4, 10, 20, 40, 100 … */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 10].find((step) => step * power >= value) ?? 10) * power;
}

const STEPS_MS = [
  [0.1, "0.1 s"],
  [1, "1 s"],
  [10, "10 s"],
  [60, "1 min"],
  [600, "10 min"],
  [3600, "1 h"],
  [6 * 3600, "6 h"],
  [24 * 3600, "1 d"],
  [7 * 24 * 3600, "7 d"],
  [30 * 24 * 3600, "30 d"],
] as const;
/** Beyond this ratio, small values would vanish on a linear scale. */
const LINEAR_RATIO = 20;
const MOST_TICKS = 5;

/** For durations, ms: logarithmic if the values differ widely, because an outage must not hide all other values. */
export function durationScale(values: number[]): ChartScale {
  const most = Math.max(SECOND_MS, ...values);
  const least = Math.min(most, ...values.filter((value) => value > 0));
  if (most / least <= LINEAR_RATIO) {
    const unit = [DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS].find((ms) => most >= ms)!;
    const top = roundUp(most / unit) * unit;
    return {
      heightOf: (value) => value / top,
      ticks: [top / 2, top].map((value) => ({ value, text: shortDuration(value) })),
    };
  }
  const from = STEPS_MS.findLastIndex(([seconds]) => seconds * SECOND_MS <= least);
  const to = STEPS_MS.findIndex(([seconds]) => seconds * SECOND_MS >= most);
  const steps = STEPS_MS.slice(Math.max(0, from), to < 0 ? undefined : to + 1);
  const [bottom, top] = [steps[0]![0] * SECOND_MS, steps.at(-1)![0] * SECOND_MS];
  const every = Math.ceil((steps.length - 1) / MOST_TICKS);
  return {
    heightOf: (value) => Math.min(1, Math.max(0, Math.log(value / bottom) / Math.log(top / bottom))),
    ticks: steps
      .toReversed()
      .filter((_, index) => index % every === 0 && index < steps.length - 1)
      .map(([seconds, text]) => ({ value: seconds * SECOND_MS, text })),
  };
}

function shortDuration(ms: number): string {
  const [unit, name] = (
    [
      [DAY_MS, "d"],
      [HOUR_MS, "h"],
      [MINUTE_MS, "min"],
      [SECOND_MS, "s"],
    ] as const
  ).find(([one]) => ms >= one) ?? [SECOND_MS, "s"];
  return `${Math.round((ms / unit) * 10) / 10} ${name}`;
}
