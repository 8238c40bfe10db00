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

/** All but its start is relative: what lines have in common is the same text, which compresses well. */
function Line({ line: { link, points, ends } }: { line: DiagramLine }) {
  const isLoop = link.from === link.to;
  const [first, last] = [points[0]!, points.at(-1)!];
  const direction = isLoop || first.x < last.x ? 1 : -1;
  const endDirection = isLoop ? 1 : -direction;
  const start = { x: first.x + direction * FOOT, y: first.y };
  const end = { x: last.x + endDirection * FOOT, y: last.y };
  const inner = isLoop ? loop(end.y - start.y) : curve([start, ...points.slice(1, -1), end]);
  const d = `M${round(start.x)} ${round(start.y)}${foot(direction, ends[0])}${inner}${foot(endDirection, ends[1])}`;
  return <path class="er-line" d={d} />;
}

/** Leaves and arrives horizontally, and passes the bends between layers without a corner. */
function curve(points: Point[]): string {
  const bends = points
    .map(({ x, y }) => ({ x: round(x), y: round(y) }))
    // A line goes straight on past each table of a layer.
    .filter(({ y }, at, all) => all[at - 1]?.y !== y || all[at + 1]?.y !== y);
  const parts = bends.slice(1).map((to, at) => {
    const [x, y] = [to.x - bends[at]!.x, to.y - bends[at]!.y];
    const bend = round(x / 2);
    return y === 0 ? `h${x}` : `c${bend} 0 ${x - bend} ${y} ${x} ${y}`;
  });
  return parts.join("");
}

function loop(height: number): string {
  const y = round(height);
  return `c28 0 28 ${y} 0 ${y}`;
}

/** A crow's foot for many, a bar for at most one: from its tip to the box, and back. */
function foot(direction: number, end: End): string {
  const [out, back] = [direction * FOOT, -direction * FOOT];
  if (end === "many") return `m${back} -5l${out} 5l${back} 5m0 -5h${out}`;
  return `h${back}m${direction * 7} -5v10m${direction * 4} -5`;
}

function round(value: number): number {
  return Math.round(value);
}

function cut(text: string, length: number): string {
  const letters = [...text];
  return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
}
