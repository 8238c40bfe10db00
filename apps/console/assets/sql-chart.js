/* Draws a result as a chart. The SQL editor's script loads it when a chart is asked for. */
import uPlot from "uplot";
import styles from "uplot/dist/uPlot.min.css" with { type: "text" };

const HEIGHT = 280;
const DAY_SECONDS = 86_400;
const COLORS = ["--client", "--accent", "--yellow", "--green", "--red", "--muted"];
const TIME_TYPES = /^(?:date|timestamp|timestamptz)$/;
const ALL = "all";
/** Of the place of a row. */
const BARS_WIDTH = 0.7;

const sheet = new CSSStyleSheet();
sheet.replaceSync(styles);
document.adoptedStyleSheets.push(sheet);

/**
 * Draws bars or lines: numbers of a result by its first time, else by its first text, else by its rows. The reader may
 * choose others.
 *
 * @param columns with `name`, `type`, and whether they are numbers
 */
export function drawChart(host, columns, rows) {
  const numbers = columns.flatMap(({ isNumber }, at) => (isNumber ? [at] : []));
  if (numbers.length === 0 || rows.length === 0) {
    const note = document.createElement("p");
    note.className = "muted";
    note.textContent = "A chart needs a column of numbers, such as count(*) or sum(…).";
    host.replaceChildren(note);
    return;
  }
  const time = columns.findIndex(({ type }) => TIME_TYPES.test(type));
  const text = columns.findIndex(({ isNumber, type }) => !isNumber && !type.endsWith("[]"));
  const chosen = {
    x: time >= 0 ? time : text >= 0 ? text : numbers.length > 1 ? numbers[0] : -1,
    y: ALL,
    form: time >= 0 || text < 0 ? "line" : "bars",
  };
  const named = columns.map(({ name }, at) => [String(at), name]);
  const tools = document.createElement("div");
  tools.className = "chart-tools";
  const drawing = document.createElement("div");
  drawing.className = "chart-drawing";
  drawing.role = "img";
  drawing.tabIndex = 0;
  tools.append(
    choice(
      "Type",
      chosen.form,
      [
        ["bars", "Bars"],
        ["line", "Line"],
      ],
      (form) => Object.assign(chosen, { form }),
    ),
    choice("X axis", String(chosen.x), [["-1", "Rows"], ...named], (x) =>
      Object.assign(chosen, { x: Number(x) }),
    ),
    choice("Y axis", ALL, [[ALL, "All numbers"], ...numbers.map((at) => named[at])], (y) =>
      Object.assign(chosen, { y }),
    ),
  );
  host.replaceChildren(tools, drawing);
  let plot;
  const draw = () => {
    plot?.destroy();
    plot = plotOf(drawing, columns, rows, numbers, chosen);
  };
  draw();
  tools.addEventListener("change", draw);
  // Arrow keys move the cursor that the pointer moves; the legend has its values.
  drawing.addEventListener("keydown", (event) => {
    const [places] = plot.data;
    const at = plot.cursor.idx ?? -1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: places.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const place = places[Math.max(0, Math.min(places.length - 1, to))];
    plot.setCursor({ left: plot.valToPos(place, "x"), top: HEIGHT / 4 });
  });
  new ResizeObserver(() => plot.setSize({ width: drawing.clientWidth, height: HEIGHT })).observe(drawing);
}

function choice(label, value, options, choose) {
  const field = document.createElement("label");
  const select = document.createElement("select");
  select.append(...options.map(([of, text]) => new Option(text, of, false, of === value)));
  select.addEventListener("change", () => choose(select.value));
  field.append(label, select);
  return field;
}

/** Lines are along a scale of times or numbers; bars stand next to each other, in the order of the rows. */
function plotOf(drawing, columns, rows, numbers, { x, y, form }) {
  const shown = (y === ALL ? numbers : [Number(y)]).filter((at) => at !== x);
  const isBars = form === "bars";
  const isTime = !isBars && x >= 0 && TIME_TYPES.test(columns[x].type);
  const isScale = isTime || (!isBars && x >= 0 && columns[x].isNumber);
  const points = rows
    .map((row, at) => ({ row, at: isScale ? numberOf(row[x], isTime) : at }))
    .filter(({ at }) => at !== null);
  if (isScale) points.sort((one, other) => one.at - other.at);
  const labelAt = (at) => (x < 0 ? String(at + 1) : (points[at]?.row[x] ?? ""));
  const xName = x < 0 ? "row" : columns[x].name;
  drawing.ariaLabel = `${isBars ? "Bars" : "Lines"} of ${shown.map((at) => columns[at].name).join(", ")} by ${xName}; the table has the numbers`;

  const color = (name) => colorOf(drawing, name);
  const axis = {
    stroke: color("--muted"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
  };
  const marksOf = {
    time: (_, marks, _axis, _space, step) => marks.map((at) => timeText(at, step)),
    place: (_, marks) => marks.map((at) => (Number.isInteger(at) ? labelAt(at) : "")),
  };
  const xAxis = isTime
    ? { values: marksOf.time, space: 90 }
    : isScale
      ? {}
      : { values: marksOf.place, space: 70 };
  const xScale = isScale ? {} : { range: [-0.5, points.length - 0.5] };
  const xValue = isTime
    ? (_, at) => (at === null ? "" : timeText(at, 1))
    : (_, at) => (at === null ? "" : labelAt(at));
  return new uPlot(
    {
      width: drawing.clientWidth,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: {
        x: { time: isTime, ...xScale },
        y: { range: (_, least, most) => uPlot.rangeNum(Math.min(0, least), most, 0.1, true) },
      },
      cursor: { drag: { x: isScale, y: false } },
      axes: [
        { ...axis, ...xAxis, grid: { show: false } },
        { ...axis, size: 64 },
      ],
      series: [
        { label: xName, ...(isScale && !isTime ? {} : { value: xValue }) },
        ...shown.map((at, index) => {
          const stroke = color(COLORS[index % COLORS.length]);
          const drawn = isBars ? { ...barsOf(index, shown.length), fill: stroke, width: 0 } : { width: 2 };
          return {
            label: columns[at].name,
            stroke,
            value: (_, value) => value?.toLocaleString("en-US") ?? "",
            ...drawn,
          };
        }),
      ],
    },
    [points.map(({ at }) => at), ...shown.map((at) => points.map(({ row }) => numberOf(row[at], false)))],
    drawing,
  );
}

/** The bars of one of several columns, next to those of the others. */
function barsOf(index, count) {
  const width = BARS_WIDTH / count;
  const disp = {
    x0: { unit: 1, values: ({ data: [places] }) => places.map((at) => at - BARS_WIDTH / 2 + index * width) },
    size: { unit: 1, values: ({ data: [places] }) => places.map(() => width) },
  };
  return { paths: uPlot.paths.bars({ disp }), points: { show: false } };
}

/** A color of the stylesheet, as the drawing needs it. */
function colorOf(element, name) {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.removeProperty("color");
  return color;
}

function timeText(seconds, step) {
  const [date, time] = new Date(seconds * 1000).toISOString().split("T");
  return step >= DAY_SECONDS || seconds % DAY_SECONDS === 0
    ? date
    : `${date.slice(5)} ${time.slice(0, step < 60 ? 8 : 5)}`;
}

function numberOf(text, isTime) {
  if (text === null) return null;
  const value = isTime ? secondsOf(text) : Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Of Postgres' text: without a zone, or with one as `+00` or `+05:30`. */
function secondsOf(text) {
  const [, date, time = "00:00:00", zone = "Z"] =
    /^(\S+?)(?:[ T]([\d:.]+)([-+]\d\d(?::\d\d)?)?)?$/.exec(text) ?? [];
  return Date.parse(`${date}T${time}${zone.length === 3 ? `${zone}:00` : zone}`) / 1000;
}
