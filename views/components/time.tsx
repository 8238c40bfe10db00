/**
 * A time, as every page shows it: in UTC, until the console's script writes it in the browser's time zone. The title
 * keeps UTC.
 */
import type { ComponentChildren } from "preact";
import { inUtc, timeText } from "../format";

export type TimeForm = keyof typeof timeText;

/** @param props.form default `full`; `bare` and `bareDay` where a heading names the time zone (`Zone`) */
export function Time({ at, form = "full" }: { at: Date; form?: TimeForm }) {
  const iso = at.toISOString();
  return (
    <time dateTime={iso} data-form={form} title={inUtc(at, iso)}>
      {timeText[form](at)}
    </time>
  );
}

/** Names the time zone of bare times: `(UTC)`, which the script hides once it has written them in the local one. */
export function Zone() {
  return <span class="time-zone"> (UTC)</span>;
}

/**
 * The tooltip of a part of a chart, whose text has the times `at` in the form `form`: the script replaces them when the
 * pointer is over the part.
 */
export function TimedTitle(props: { at: Date[]; form: TimeForm; children: ComponentChildren }) {
  const { at, form, children } = props;
  if (at.length === 0) return <title>{children}</title>;
  return (
    <title data-at={at.map((one) => one.toISOString()).join(" ")} data-form={form}>
      {children}
    </title>
  );
}
