/**
 * Lays out a diagram of tables and links: boxes in layers, from left to right, and lines between their rows.
 *
 * Deterministic. For tables that are connected, dagre chooses the layers and the order in them, unless they have so many
 * links that it would keep the process busy; lines pass between the boxes of the layers that they cross. The groups are
 * then placed in lines, the largest first, and tables without links fill a block of their own.
 */
import { Graph, layout } from "@dagrejs/dagre";
import type { TableSpec } from "../replica";
import { isMany, type TableLink, tableLinks } from "./table-links";

interface DiagramRow {
  name: string;
  type: string;
  isLink: boolean;
}

export interface DiagramBox {
  table: TableSpec;
  x: number;
  y: number;
  width: number;
  height: number;
  rows: DiagramRow[];
  /** Columns that are not shown. */
  hidden: number;
}

export interface DiagramLine {
  link: TableLink;
  /** From the row of the link to the row of its other side, or to the head of the table. */
  points: Point[];
  /** The cardinality at each end: how many records of that table one record of the other may have. */
  ends: [End, End];
}

export type End = "one" | "many";
export type Point = { x: number; y: number };

export interface Diagram {
  width: number;
  height: number;
  boxes: DiagramBox[];
  lines: DiagramLine[];
}

export const HEAD_HEIGHT = 34;
export const ROW_HEIGHT = 22;
const WIDTH = 240;
const MARGIN = 24;
/** Between groups, and between tables without links. */
const GAP = 48;
const LAYER_GAP = 96;
const BOX_GAP = 36;
/** Rows of a box, by the number of tables: links first, then other columns. */
const SHOWN_ROWS = [
  { upTo: 12, links: 12, all: 8 },
  { upTo: 40, links: 12, all: 5 },
  { upTo: Number.POSITIVE_INFINITY, links: 5, all: 0 },
];
/** Width of the frame that shows a diagram, relative to its height. */
const ASPECT = 2;
/** A layer that is higher than this, relative to the height of a square diagram, is broken into columns: which is tried. */
const TRIED_HEIGHTS = [0.7, 0.9, 1.1, 1.4, 1.8, 2.4, Number.POSITIVE_INFINITY];
/** Links of a diagram, and layers that they cross, up to which dagre takes some tenths of a second for all groups. */
const MOST_EFFORT = 1000;
/** Between lines that pass through the same gap. */
const LINE_GAP = 6;

export function layOut(tables: TableSpec[]): Diagram {
  const links = tableLinks(tables);
  const boxes = new Map(tables.map((table) => [table, boxOf(table, tables.length)]));
  const effort = { left: MOST_EFFORT };
  const groups = groupsOf(tables, links).map((group) => laidOut(group, links, boxes, effort));
  const alone = tables.filter((table) => !links.some(({ from, to }) => from === table || to === table));
  if (alone.length > 0) groups.push(blockOf(alone, boxes));
  const size = pack(groups);
  return {
    ...size,
    boxes: groups.flatMap((group) => group.boxes),
    lines: groups.flatMap((group) => group.lines),
  };
}

function boxOf(table: TableSpec, tables: number): DiagramBox {
  const columns = table.columns.map(({ name, columnType, type }) => ({
    name,
    type: columnType as string,
    isLink: type === "links",
  }));
  const most = SHOWN_ROWS.find(({ upTo }) => tables <= upTo)!;
  let links = 0;
  const linked = columns.filter(({ isLink }) => isLink && links++ < most.links);
  let room = most.all - linked.length;
  const rows = columns.filter((row) => (row.isLink ? linked.includes(row) : room-- > 0));
  const hidden = columns.length - rows.length;
  const height = HEAD_HEIGHT + (rows.length + (hidden > 0 ? 1 : 0)) * ROW_HEIGHT + 6;
  return { table, x: 0, y: 0, width: WIDTH, height, rows, hidden };
}

/** Connected tables; the largest group first, tables without links in none. */
function groupsOf(tables: TableSpec[], links: TableLink[]): TableSpec[][] {
  const groupOf = new Map<TableSpec, TableSpec[]>();
  for (const { from, to } of links) {
    const [a, b] = [groupOf.get(from) ?? [from], groupOf.get(to) ?? [to]];
    const both = a === b ? a : [...new Set([...a, ...b])];
    for (const table of both) groupOf.set(table, both);
  }
  const groups = [
    ...new Set(tables.flatMap((table) => groupOf.get(table) ?? []).map((one) => groupOf.get(one)!)),
  ];
  return groups.sort((a, b) => b.length - a.length);
}

interface Group {
  width: number;
  height: number;
  boxes: DiagramBox[];
  lines: DiagramLine[];
}

/** @param effort what may still be spent on placing groups well */
function laidOut(
  group: TableSpec[],
  all: TableLink[],
  boxes: Map<TableSpec, DiagramBox>,
  effort: { left: number },
): Group {
  const own = group.map((table) => boxes.get(table)!);
  const links = all.filter(({ from }) => group.includes(from));
  const layers = layersOf(group, links);
  const needed = links.length + crossedLayers(links, layers);
  if (needed <= effort.left) {
    effort.left -= needed;
    placeWell(own, links);
  } else for (const [at, box] of own.entries()) [box.x, box.y] = [layers.get(box.table)! * WIDTH, at];
  const columns = inColumns(own);
  const route = router(columns);
  const lines = links.map((link) => lineOf(link, boxes.get(link.from)!, boxes.get(link.to)!, route));
  // A link of a table to itself leaves its box on the right.
  const isWider = links.some(({ from, to }) => from === to);
  const width = Math.max(...own.map((box) => box.x + box.width)) + (isWider ? GAP : 0);
  const height = Math.max(...own.map((box) => box.y + box.height));
  return { width, height, boxes: own, lines };
}

/** Places the boxes in layers so that few lines cross. */
function placeWell(boxes: DiagramBox[], links: TableLink[]): void {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: BOX_GAP, ranksep: LAYER_GAP, edgesep: 18 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { table, width, height } of boxes) graph.setNode(table.tableId, { width, height });
  for (const [at, { from, to }] of links.entries()) {
    if (from !== to) graph.setEdge(from.tableId, to.tableId, {}, String(at));
  }
  layout(graph);
  for (const box of boxes) {
    const { x, y } = graph.node(box.table.tableId) as Point;
    box.x = x;
    box.y = y - box.height / 2;
  }
}

/** Returns the layer of each table, one after those of the tables that link to it; links that close a circle do not count. */
function layersOf(group: TableSpec[], links: TableLink[]): Map<TableSpec, number> {
  const before = Map.groupBy(links, ({ to }) => to);
  const layers = new Map<TableSpec, number>();
  const layerOf = (table: TableSpec): number => {
    const known = layers.get(table);
    if (known !== undefined) return known;
    // Until it is known: the links of a circle find this.
    layers.set(table, -1);
    const layer = 1 + Math.max(-1, ...(before.get(table) ?? []).map(({ from }) => layerOf(from)));
    layers.set(table, layer);
    return layer;
  };
  for (const table of group) layerOf(table);
  return layers;
}

/** Returns how many gaps between layers all links cross together. */
function crossedLayers(links: TableLink[], layers: Map<TableSpec, number>): number {
  return links.reduce((sum, { from, to }) => sum + Math.abs(layers.get(to)! - layers.get(from)!), 0);
}

/** Places the boxes of each layer in columns, each centered, so that the whole is shown as large as possible. */
function inColumns(boxes: DiagramBox[]): DiagramBox[][] {
  const layers = [...Map.groupBy(boxes, (box) => Math.round(box.x)).entries()]
    .sort(([a], [b]) => a - b)
    .map(([, layer]) => layer.sort((a, b) => a.y - b.y));
  const area = boxes.reduce((sum, box) => sum + (box.width + LAYER_GAP) * (box.height + BOX_GAP), 0);
  const tried = TRIED_HEIGHTS.map((height) => broken(layers, Math.sqrt(area) * height));
  const sizeOf = (columns: DiagramBox[][]) =>
    Math.max(columns.length * (WIDTH + LAYER_GAP), ASPECT * Math.max(...columns.map(heightOf)));
  const columns = tried.reduce((best, one) => (sizeOf(one) < sizeOf(best) ? one : best));
  const height = Math.max(...columns.map(heightOf));
  for (const [at, column] of columns.entries()) {
    let y = (height - heightOf(column)) / 2;
    for (const box of column) {
      box.x = at * (WIDTH + LAYER_GAP);
      box.y = y;
      y += box.height + BOX_GAP;
    }
  }
  return columns;
}

/** Breaks layers that are higher than `most` into columns of about equal height. */
function broken(layers: DiagramBox[][], most: number): DiagramBox[][] {
  return layers.flatMap((layer) => {
    const total = heightOf(layer);
    const count = Math.ceil(total / most) || 1;
    const parts: DiagramBox[][] = Array.from({ length: count }, () => []);
    let above = 0;
    for (const box of layer) {
      parts[Math.min(count - 1, Math.floor(((above + box.height / 2) / total) * count))]!.push(box);
      above += box.height + BOX_GAP;
    }
    return parts.filter((part) => part.length > 0);
  });
}

function heightOf(column: DiagramBox[]): number {
  return column.reduce((sum, { height }) => sum + height + BOX_GAP, -BOX_GAP);
}

/** Returns the points at which a line passes through the columns between two boxes. */
type Route = (from: Point, to: Point) => Point[];

/** Through each column, lines take the gap next to their straight way, side by side. */
function router(columns: DiagramBox[][]): Route {
  const gaps = columns.map((column) => [
    { y: column[0]!.y - BOX_GAP / 2, lines: 0 },
    ...column.map((box) => ({ y: box.y + box.height + BOX_GAP / 2, lines: 0 })),
  ]);
  const indexOf = (x: number) => Math.floor(x / (WIDTH + LAYER_GAP));
  return (from, to) => {
    const step = Math.sign(to.x - from.x);
    const points: Point[] = [];
    for (let at = indexOf(from.x) + step; step !== 0 && at * step < indexOf(to.x) * step; at += step) {
      const left = at * (WIDTH + LAYER_GAP);
      const way = (left + WIDTH / 2 - from.x) / (to.x - from.x);
      const wanted = from.y + way * (to.y - from.y);
      const gap = gaps[at]!.reduce((best, one) =>
        Math.abs(one.y - wanted) < Math.abs(best.y - wanted) ? one : best,
      );
      // 0, 1, -1, 2, -2, and again from the middle when the gap is full.
      const place = gap.lines++ % Math.floor(BOX_GAP / LINE_GAP - 1);
      const y = gap.y + (place % 2 === 1 ? 1 : -1) * Math.ceil(place / 2) * LINE_GAP;
      const ends = [left - 8, left + WIDTH + 8];
      points.push(...(step > 0 ? ends : ends.reverse()).map((x) => ({ x, y })));
    }
    return points;
  };
}

/** Lines end at the rows of their columns, on the sides of the boxes that face each other. */
function lineOf(link: TableLink, from: DiagramBox, to: DiagramBox, route: Route): DiagramLine {
  const isForward = from === to || from.x <= to.x;
  const first = { x: isForward ? from.x + from.width : from.x, y: rowAt(from, link.column.name) };
  const last = {
    x: isForward && from !== to ? to.x : to.x + to.width,
    y: link.inverse ? rowAt(to, link.inverse.name) : to.y + HEAD_HEIGHT / 2,
  };
  const ends: [End, End] = [
    link.inverse && !isMany(link.inverse) ? "one" : "many",
    isMany(link.column) ? "many" : "one",
  ];
  const inside = (box: DiagramBox, { y }: Point) => ({ x: box.x + box.width / 2, y });
  return { link, points: [first, ...route(inside(from, first), inside(to, last)), last], ends };
}

/** Middle of the column's row, or of the row that stands for all that are not shown. */
function rowAt(box: DiagramBox, name: string): number {
  const found = box.rows.findIndex((row) => row.name === name);
  const at = found === -1 ? box.rows.length : found;
  return box.y + HEAD_HEIGHT + (at + 0.5) * ROW_HEIGHT;
}

/** Tables without links: a block of about as many rows as columns. */
function blockOf(tables: TableSpec[], boxes: Map<TableSpec, DiagramBox>): Group {
  const own = tables.map((table) => boxes.get(table)!);
  const across = Math.ceil(Math.sqrt(own.length * ASPECT));
  const tops = Array.from({ length: Math.min(across, own.length) }, () => 0);
  for (const box of own) {
    const column = tops.indexOf(Math.min(...tops));
    box.x = column * (WIDTH + GAP);
    box.y = tops[column]!;
    tops[column] = box.y + box.height + GAP / 2;
  }
  return {
    width: tops.length * (WIDTH + GAP) - GAP,
    height: Math.max(...tops) - GAP / 2,
    boxes: own,
    lines: [],
  };
}

/** Places groups in lines of about equal width. */
function pack(groups: Group[]): { width: number; height: number } {
  const area = groups.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0);
  const widest = Math.max(0, ...groups.map(({ width }) => width));
  const most = Math.max(widest, Math.sqrt(area * ASPECT));
  let [x, y, lineHeight, width] = [0, 0, 0, 0];
  for (const group of groups) {
    if (x > 0 && x + group.width > most) [x, y, lineHeight] = [0, y + lineHeight + GAP, 0];
    move(group, x + MARGIN, y + MARGIN);
    x += group.width + GAP;
    width = Math.max(width, x - GAP);
    lineHeight = Math.max(lineHeight, group.height);
  }
  return { width: Math.ceil(width + 2 * MARGIN), height: Math.ceil(y + lineHeight + 2 * MARGIN) };
}

function move({ boxes, lines }: Group, x: number, y: number): void {
  for (const box of boxes) {
    box.x += x;
    box.y += y;
  }
  for (const line of lines) {
    line.points = line.points.map((point) => ({ x: point.x + x, y: point.y + y }));
  }
}
