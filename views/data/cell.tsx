/** One cell of a grid or of a record, by its field's type. Pictures come through the console: its policy allows no other host. */
import type { ComponentChildren } from "preact";
import { cutText } from "../../core/cut-text";
import {
  type AttachedFile,
  type BrowsedColumn,
  CELL_CHARACTERS,
  type Cell,
  type CellList,
  elementsOf,
} from "../../core/data-browser";
import {
  colorClass,
  fileName,
  formatNumber,
  formatTime,
  isPicture,
  isPictureType,
  thumbnailSize,
} from "./format-cell";
import { recordPath, thumbnailPath, webLink } from "./paths";

/** The height of thumbnails. */
const GRID_PIXELS = 24;
const RECORD_PIXELS = 160;

interface CellContext {
  baseId: string;
  /** Whose cell it is; `tableId`: the source's, if known. */
  record: { tableId: string | undefined; id: string };
  /** The texts of linked records, by table and record. */
  linked: Map<string, Map<string, string>>;
  /** A record that is shown alone: whole texts on several lines. */
  isWhole?: boolean;
}

interface CellProps extends CellContext {
  column: BrowsedColumn;
  cell: Cell;
}

export function CellValue(props: CellProps) {
  const { column, cell, isWhole } = props;
  if (column.kind === "checkbox") return <CheckMark isChecked={cell === true} />;
  if (cell === null || cell === "") return isWhole ? <span class="muted">Empty</span> : null;
  if (column.link) return <Links {...props} link={column.link} />;
  if (typeof cell === "object") return <List {...props} list={cell} />;
  const text = String(cell);
  if (column.kind === "number") return <>{formatNumber(text, column)}</>;
  if (column.kind === "time")
    return (
      <time dateTime={`${text.replace(" ", "T")}Z`} title={`${text} UTC`}>
        {formatTime(text)}
      </time>
    );
  if (column.kind === "date") return <>{text}</>;
  return <Text {...props} text={text} />;
}

/** Does the grid show less than the record has? */
export function isClipped(cell: Cell): boolean {
  if (typeof cell === "string") return cell.length > CELL_CHARACTERS;
  if (typeof cell !== "object" || cell === null) return false;
  return cell.total > cell.elements.length || cell.elements.some((one) => one.length > CELL_CHARACTERS);
}

function CheckMark({ isChecked }: { isChecked: boolean }) {
  return isChecked ? (
    <span class="check on" role="img" aria-label="Checked" />
  ) : (
    <span class="check" role="img" aria-label="Not checked" />
  );
}

function Text({ column, text, isWhole }: CellProps & { text: string }) {
  const { shownAs } = column;
  if (shownAs === "single_select") return <Tag column={column} text={text} />;
  if (isPerson(shownAs)) return <Person text={text} />;
  const href = shownAs === "url" || shownAs === "button" ? webLink(text) : undefined;
  if (href && (isWhole || text.length <= CELL_CHARACTERS)) {
    return (
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {text}
      </a>
    );
  }
  return isWhole ? <span class="pre-line wrap">{text}</span> : <bdi>{clipped(text)}</bdi>;
}

function List({ baseId, record, column, list, isWhole }: CellProps & { list: CellList }) {
  const { shownAs } = column;
  const more = list.total - list.elements.length;
  return (
    <Chips more={more}>
      {list.elements.map((text, index) => {
        const key = `${index} ${text}`;
        if (shownAs === "attachment") {
          const file = list.files?.[index];
          const name = file?.filename || fileName(text, index);
          const thumbnail =
            file && thumbnailPath(baseId, record, column.fieldId, file.id, isWhole ? "large" : "small");
          if (thumbnail && isPictureType(file.type)) {
            return (
              <Thumbnail key={key} url={text} name={name} file={file} src={thumbnail} isWhole={isWhole} />
            );
          }
          return <Attachment key={key} url={text} name={name} />;
        }
        if (isPerson(shownAs)) return <Person key={key} text={text} />;
        if (shownAs === "multiple_select" || shownAs === "single_select") {
          return <Tag key={key} column={column} text={text} />;
        }
        return (
          <span key={key} class="chip plain">
            {isWhole ? text : clipped(text)}
          </span>
        );
      })}
    </Chips>
  );
}

/** Chips that lead to the linked records, named by their primary field. */
function Links({ baseId, cell, linked, link }: CellProps & { link: NonNullable<BrowsedColumn["link"]> }) {
  const texts = linked.get(link.tableId);
  const ids = elementsOf(cell);
  const total = typeof cell === "object" && cell !== null ? cell.total : ids.length;
  return (
    <Chips more={total - ids.length}>
      {ids.map((id, index) => {
        const path = recordPath(baseId, link.table, id);
        return (
          <a key={`${index} ${id}`} class="chip" href={path} hx-get={path}>
            {texts?.get(id) || (texts?.has(id) ? "Unnamed record" : id)}
          </a>
        );
      })}
    </Chips>
  );
}

function Chips({ more, children }: { more: number; children: ComponentChildren }) {
  return (
    <span class="chips">
      {children}
      {more > 0 ? <span class="more muted">+{more}</span> : null}
    </span>
  );
}

function Tag({ column, text }: { column: BrowsedColumn; text: string }) {
  const colors = column.display?.colors ?? {};
  return <span class={colorClass(Object.hasOwn(colors, text) ? colors[text] : undefined)}>{text}</span>;
}

function Person({ text }: { text: string }) {
  return (
    <span class="chip plain person">
      <span class="initial" aria-hidden="true">
        {[...text][0]}
      </span>
      {text}
    </span>
  );
}

interface ThumbnailProps {
  url: string;
  name: string;
  file: AttachedFile;
  src: string;
  isWhole: boolean | undefined;
}

/** In the size that the picture will have, so that nothing moves when it arrives. */
function Thumbnail({ url, name, file, src, isWhole }: ThumbnailProps) {
  const { width, height } = thumbnailSize(file, isWhole ? RECORD_PIXELS : GRID_PIXELS);
  const picture = <img src={src} alt={name} width={width} height={height} loading="lazy" decoding="async" />;
  const href = webLink(url);
  return href ? (
    <a class="thumb" href={href} title={name} target="_blank" rel="noopener noreferrer">
      {picture}
    </a>
  ) : (
    <span class="thumb" title={name}>
      {picture}
    </span>
  );
}

/** By its name: a file that is no picture, or whose type is not known. */
function Attachment({ url, name }: { url: string; name: string }) {
  const href = webLink(url);
  const look = `chip plain file ${isPicture(name) ? "picture" : ""}`.trim();
  if (!href) return <span class={look}>{name}</span>;
  return (
    <a class={look} href={href} target="_blank" rel="noopener noreferrer">
      {name}
    </a>
  );
}

function isPerson(type: BrowsedColumn["shownAs"]): boolean {
  return (
    type === "collaborator" ||
    type === "collaborators" ||
    type === "created_by" ||
    type === "last_modified_by"
  );
}

/** One line, and a mark if there is more. */
function clipped(text: string): string {
  const line = cutText(text, CELL_CHARACTERS);
  return text.length > CELL_CHARACTERS ? `${line}…` : line;
}
