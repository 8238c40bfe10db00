/*
 * The panes of the SQL page: separators that are dragged, or moved by arrow keys, and the lists at the side. Sizes are
 * in a constructed sheet, because the policy forbids style attributes, and are kept for the next visit.
 */
const STEP = 2;
const [LEAST, MOST] = [10, 80];
const SIZES = "basetide.sqlPanes";

const page = document.getElementById("sql-page");
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets.push(sheet);
const sizes = JSON.parse(localStorage.getItem(SIZES) ?? "{}");

export function showPanes() {
  for (const bar of page.querySelectorAll("[data-splitter]")) makeSplitter(bar);
  applySizes();
  for (const button of page.querySelectorAll("[data-shows-list]")) {
    button.addEventListener("click", () => showList(button.dataset.showsList));
  }
  showList("Tables");
}

function showList(name) {
  for (const button of page.querySelectorAll("[data-shows-list]")) {
    button.ariaPressed = String(button.dataset.showsList === name);
  }
  for (const list of page.querySelectorAll("[data-list]")) list.hidden = list.dataset.list !== name;
}

function makeSplitter(bar) {
  const { splitter: name, controls } = bar.dataset;
  const isVertical = bar.classList.contains("vertical");
  const pane = document.getElementById(controls);
  Object.assign(bar, { role: "separator", tabIndex: 0, ariaLabel: bar.dataset.label });
  bar.ariaOrientation = isVertical ? "vertical" : "horizontal";
  bar.setAttribute("aria-controls", controls);
  bar.ariaValueMin = String(LEAST);
  bar.ariaValueMax = String(MOST);

  /** The share of the page that ends at a point, in percent. */
  const shareAt = (point) => {
    const box = page.getBoundingClientRect();
    return isVertical ? ((point - box.left) / box.width) * 100 : ((point - box.top) / box.height) * 100;
  };
  const current = () => {
    const box = pane.getBoundingClientRect();
    return shareAt(isVertical ? box.right : box.bottom);
  };
  const show = () => {
    bar.ariaValueNow = String(Math.round(Math.min(MOST, Math.max(LEAST, current()))));
  };
  const resize = (percent) => {
    if (percent === undefined) delete sizes[name];
    else sizes[name] = Math.round(Math.min(MOST, Math.max(LEAST, percent)) * 10) / 10;
    localStorage.setItem(SIZES, JSON.stringify(sizes));
    applySizes();
    show();
  };
  bar.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    bar.setPointerCapture(event.pointerId);
    bar.focus();
  });
  bar.addEventListener("pointermove", (event) => {
    if (bar.hasPointerCapture(event.pointerId)) resize(shareAt(isVertical ? event.clientX : event.clientY));
  });
  bar.addEventListener("dblclick", () => resize(undefined));
  const [less, more] = isVertical ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  bar.addEventListener("keydown", (event) => {
    const sizeAt = {
      [less]: () => current() - STEP,
      [more]: () => current() + STEP,
      Home: () => LEAST,
      End: () => MOST,
      Enter: () => undefined,
    }[event.key];
    if (!sizeAt) return;
    event.preventDefault();
    resize(sizeAt());
  });
  applySizes();
  show();
}

function applySizes() {
  const rules = Object.entries(sizes).map(([name, percent]) => `--sql-${name}: ${Number(percent)}%;`);
  sheet.replaceSync(`.sql-page { ${rules.join(" ")} }`);
}
