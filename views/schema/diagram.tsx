/** Draws the diagram of a base's tables and links as SVG. Its colors come from the stylesheet. */
import {
  type Diagram,
  type DiagramBox,
  type DiagramLine,
  type End,
  HEAD_HEIGHT,
  type Point,
  ROW_HEIGHT,
} from "../../core/exports";

/** Characters that fit in a box, with the widest common letters. */
const NAME_LENGTH = 24;
const ROW_LENGTH = 29;
/** How far the mark of a line's end reaches from the box. */
const FOOT = 11;

/** @param props.path of the schema page: a table leads to its columns */
export function DiagramSvg({ diagram, path }: { diagram: Diagram; path: string }) {
  const { width, height, boxes, lines } = diagram;
  return (
    // biome-ignore lint/a11y/useSemanticElements: it is a drawing with links
    <svg
      class="er"
      role="group"
      aria-label="Diagram of the tables and their links"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
    >
      <g>
        {lines.map((line) => (
          <Line key={line.link.column.fieldId + line.link.from.tableId} line={line} />
        ))}
      </g>
      {boxes.map((box) => (
        <Box key={box.table.tableId} box={box} path={path} />
      ))}
    </svg>
  );
}

/** Drawn at the origin and moved, so that boxes are the same text, which compresses well. */
function Box({ box, path }: { box: DiagramBox; path: string }) {
  const { table, x, y, width, height, rows, hidden } = box;
  const href = `${path}?table=${encodeURIComponent(table.name)}#columns`;
  const name = cut(table.name, NAME_LENGTH);
  return (
    <a class="er-table" href={href}>
      <g transform={`translate(${round(x)} ${round(y)})`}>
        <rect class="er-box" width={width} height={height} rx="7" />
        <path class="er-head" d={headPath(box)} />
        <text class="er-name" x="12" y="22">
          {name}
          {name === table.name ? null : <title>{table.name}</title>}
        </text>
        {rows.map((row, at) => (
          <g key={row.name}>
            <text class={row.isLink ? "er-row link" : "er-row"} x="12" y={rowY(at)}>
              {cut(row.name, ROW_LENGTH - row.type.length)}
            </text>
            <text class="er-type" x={width - 12} y={rowY(at)} text-anchor="end">
              {row.type}
            </text>
          </g>
        ))}
        {hidden > 0 ? (
          <text class="er-type" x="12" y={rowY(rows.length)}>
            {rows.length > 0 ? `${hidden} more` : `${hidden} columns`}
          </text>
        ) : null}
      </g>
    </a>
  );
}

/** Baseline of a row's text. */
function rowY(at: number): number {
  return HEAD_HEIGHT + (at + 0.5) * ROW_HEIGHT + 4;
}

/** The head's background, with the upper corners of the box. */
function headPath({ width }: DiagramBox): string {
  return `M0 ${HEAD_HEIGHT}V7a7 7 0 0 1 7 -7H${width - 7}a7 7 0 0 1 7 7V${HEAD_HEIGHT}Z`;
}

function Line({ line: { link, points, ends } }: { line: DiagramLine }) {
  const isLoop = link.from === link.to;
  const [first, last] = [points[0]!, points.at(-1)!];
  const direction = isLoop || first.x < last.x ? 1 : -1;
  const start = { x: first.x + direction * FOOT, y: first.y };
  const end = { x: last.x - (isLoop ? -1 : direction) * FOOT, y: last.y };
  const inner = isLoop ? loop(start, end) : curve([start, ...points.slice(1, -1), end]);
  const feet = [foot(first, direction, ends[0]), foot(last, isLoop ? 1 : -direction, ends[1])];
  return <path class="er-line" d={`${inner}${feet.join("")}`} />;
}

/** Leaves and arrives horizontally, and passes the bends between layers without a corner. */
function curve(points: Point[]): string {
  const parts = withoutStraight(points).map((to, at, all) => {
    const from = all[at - 1];
    if (!from) return `M${round(to.x)} ${round(to.y)}`;
    if (round(from.y) === round(to.y)) return `H${round(to.x)}`;
    const bend = round((to.x - from.x) / 2);
    return `C${round(from.x + bend)} ${round(from.y)} ${round(to.x - bend)} ${round(to.y)} ${round(to.x)} ${round(to.y)}`;
  });
  return parts.join("");
}

/** Without the points at which a line goes straight on: one that passes many layers has two for each. */
function withoutStraight(points: Point[]): Point[] {
  const heightAt = (at: number) => points[at] && round(points[at].y);
  return points.filter((_, at) => heightAt(at - 1) !== heightAt(at) || heightAt(at) !== heightAt(at + 1));
}

function loop(start: Point, end: Point): string {
  const x = round(start.x + 28);
  return `M${round(start.x)} ${round(start.y)}C${x} ${round(start.y)} ${x} ${round(end.y)} ${round(end.x)} ${round(end.y)}`;
}

/** A crow's foot for many, a bar for at most one. */
function foot({ x, y }: Point, direction: number, end: End): string {
  const tip = round(x + direction * FOOT);
  const [at, middle] = [round(x), round(y)];
  if (end === "many")
    return `M${at} ${middle - 5}L${tip} ${middle}L${at} ${middle + 5}M${at} ${middle}H${tip}`;
  const bar = round(x + direction * 7);
  return `M${at} ${middle}H${tip}M${bar} ${middle - 5}V${middle + 5}`;
}

function round(value: number): number {
  return Math.round(value);
}

function cut(text: string, length: number): string {
  const letters = [...text];
  return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
}
