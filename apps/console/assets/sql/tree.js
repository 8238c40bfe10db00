/*
 * The tables and their columns, with a search. A click, or Enter, inserts a name; arrow keys move, open and close, as
 * WAI-ARIA describes trees.
 */
/** Columns that a search shows. */
const MOST_FOUND = 300;

/** @param insert is called with a name as SQL writes it */
export function showTree(host, find, { relations }, insert) {
  const tree = document.createElement("ul");
  tree.role = "tree";
  tree.ariaLabel = "Tables and columns";
  host.replaceChildren(tree);

  const draw = () => {
    const wanted = find.value.trim().toLowerCase();
    const isMatch = ({ name }) => name.toLowerCase().includes(wanted);
    let left = MOST_FOUND;
    const shown = relations.flatMap((relation) => {
      if (wanted === "") return [tableItem(relation, relation.columns, false)];
      const columns = relation.columns.filter(isMatch).slice(0, Math.max(0, left));
      left -= columns.length;
      if (columns.length > 0) return [tableItem(relation, columns, true)];
      return isMatch(relation) ? [tableItem(relation, relation.columns, false)] : [];
    });
    tree.replaceChildren(...shown);
    if (shown.length > 0) shown[0].tabIndex = 0;
    host.classList.toggle("nothing", shown.length === 0);
  };
  draw();
  find.addEventListener("input", draw);
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") focusOn(tree.querySelector("[role=treeitem]"));
  });
  tree.addEventListener("click", (event) => {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    if (event.target.closest(".tree-toggle")) setOpen(item, item.ariaExpanded !== "true");
    else insert(item.dataset.insert);
  });
  tree.addEventListener("keydown", (event) => {
    const item = event.target.closest("[role=treeitem]");
    const items = [...tree.querySelectorAll("[role=treeitem]")].filter((one) => one.checkVisibility());
    const at = items.indexOf(item);
    const act = {
      ArrowDown: () => focusOn(items[at + 1]),
      ArrowUp: () => focusOn(items[at - 1] ?? find),
      Home: () => focusOn(items[0]),
      End: () => focusOn(items.at(-1)),
      ArrowRight: () => (item.ariaExpanded === "false" ? setOpen(item, true) : focusOn(items[at + 1])),
      ArrowLeft: () =>
        item.ariaExpanded === "true"
          ? setOpen(item, false)
          : focusOn(item.parentElement.closest("[role=treeitem]")),
      Enter: () => insert(item.dataset.insert),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });

  function focusOn(item) {
    if (!item) return;
    if (item !== find) {
      for (const other of tree.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
      item.tabIndex = 0;
    }
    item.focus();
  }
}

function tableItem(relation, columns, isOpen) {
  const item = itemOf(relation);
  if (columns.length === 0) return item;
  const toggle = document.createElement("span");
  toggle.className = "tree-toggle";
  item.firstChild.prepend(toggle);
  item.columns = columns;
  setOpen(item, isOpen);
  return item;
}

/** Columns are drawn when they are first shown. */
function setOpen(item, isOpen) {
  if (isOpen && !item.querySelector("ul")) {
    const group = document.createElement("ul");
    group.role = "group";
    group.append(...item.columns.map((column) => itemOf(column)));
    item.append(group);
  }
  item.ariaExpanded = String(isOpen);
}

function itemOf({ name, written = name, type }) {
  const item = document.createElement("li");
  Object.assign(item, { role: "treeitem", tabIndex: -1, ariaLabel: type ? `${name}, ${type}` : name });
  item.dataset.insert = written;
  const row = document.createElement("span");
  row.className = "tree-row";
  const label = document.createElement("bdi");
  label.textContent = name;
  row.append(label);
  if (type) {
    const kind = document.createElement("span");
    kind.className = "column-type";
    kind.textContent = type;
    row.append(kind);
  }
  item.append(row);
  return item;
}
