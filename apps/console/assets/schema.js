/* Zoom and pan of the schema's diagram: wheel with Ctrl, pinch, drag, buttons, keys. Without it the diagram scrolls. */
const scroll = document.querySelector(".er-scroll");
const svg = scroll?.querySelector("svg");

if (svg) begin();

function begin() {
  const whole = { width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height")) };
  /** The part that is shown: its upper left corner, and pixels per unit. */
  let [x, y, scale] = [0, 0, 1];
  scroll.classList.add("zoomable");

  const draw = () => {
    const { clientWidth, clientHeight } = scroll;
    svg.setAttribute("viewBox", `${x} ${y} ${clientWidth / scale} ${clientHeight / scale}`);
  };

  /** Shows all, but never larger than drawn; what is smaller than the frame is centered. */
  const fit = () => {
    const { clientWidth, clientHeight } = scroll;
    // A page that is being left has no size.
    if (clientWidth === 0 || clientHeight === 0) return;
    scale = Math.min(1, clientWidth / whole.width, clientHeight / whole.height);
    x = (whole.width - clientWidth / scale) / 2;
    y = (whole.height - clientHeight / scale) / 2;
    draw();
  };

  /** Keeps the point at (left, top) of the frame where it is. */
  const zoom = (factor, left = scroll.clientWidth / 2, top = scroll.clientHeight / 2) => {
    const next = Math.min(3, Math.max(0.05, scale * factor));
    x += left / scale - left / next;
    y += top / scale - top / next;
    scale = next;
    draw();
  };

  const actions = { in: () => zoom(1.3), out: () => zoom(1 / 1.3), fit };
  document.addEventListener("click", (event) =>
    actions[event.target.closest?.("[data-zoom]")?.dataset.zoom]?.(),
  );

  scroll.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60 / scale;
    const keys = {
      "+": actions.in,
      "=": actions.in,
      "-": actions.out,
      0: fit,
      ArrowLeft: () => (x -= step),
      ArrowRight: () => (x += step),
      ArrowUp: () => (y -= step),
      ArrowDown: () => (y += step),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
    draw();
  });

  scroll.addEventListener(
    "wheel",
    (event) => {
      // Without Ctrl (a pinch has it) the page scrolls.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = scroll.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    },
    { passive: false },
  );

  /** By id: where each pointer was last. */
  const pointers = new Map();
  let moved = 0;
  const distance = () => {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  scroll.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    moved = 0;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  scroll.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const before = pointers.size === 2 ? distance() : 0;
    const [dx, dy] = [event.clientX - last.x, event.clientY - last.y];
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved += Math.abs(dx) + Math.abs(dy);
    // A click on a table stays a click.
    if (moved > 4 && !scroll.hasPointerCapture(event.pointerId)) scroll.setPointerCapture(event.pointerId);
    if (pointers.size === 2) {
      const box = scroll.getBoundingClientRect();
      zoom(distance() / before, event.clientX - box.left, event.clientY - box.top);
      return;
    }
    x -= dx / scale;
    y -= dy / scale;
    draw();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    scroll.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }
  scroll.addEventListener("dragstart", (event) => event.preventDefault());
  scroll.addEventListener("click", (event) => {
    if (moved > 4) event.preventDefault();
  });

  new ResizeObserver(fit).observe(scroll);
  fit();
}
