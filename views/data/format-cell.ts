/** Formats the values of cells as people read them. */
import type { BrowsedColumn } from "../../core/data-browser";

/** Beyond this a double has no decimals left. */
const EXACT = 1e15;
const MOST_STARS = 10;

/** `1,234.50`, `$12.00`, `12.3%`; the digits as they are if there is no format. */
export function formatNumber(digits: string, { shownAs, display }: BrowsedColumn): string {
  const number = Number(digits);
  if (!Number.isFinite(number) || Math.abs(number) >= EXACT) return digits;
  if (shownAs === "rating" && Number.isInteger(number) && number >= 0 && number <= MOST_STARS) {
    return "★".repeat(number);
  }
  if (shownAs === "autonumber") return digits;
  const precision = display?.precision;
  if (shownAs === "percent") return `${grouped(trimmed(number * 100, precision ?? 1))}%`;
  const text = precision === undefined || precision > 20 ? digits : number.toFixed(precision);
  if (shownAs !== "currency") return grouped(text);
  const symbol = display?.symbol ?? "";
  return text.startsWith("-") ? `-${symbol}${grouped(text.slice(1))}` : `${symbol}${grouped(text)}`;
}

/** `2026-11-22 14:30`, without seconds that are zero. */
export function formatTime(text: string): string {
  return text.replace(/(:\d\d):00(\.0+)?$/, "$1").replace(/\.\d+$/, "");
}

/** The name of an attachment, if its URL ends with one. */
export function fileName(url: string, index: number): string {
  const last = URL.parse(url)?.pathname.split("/").at(-1) ?? "";
  let name = last;
  try {
    name = decodeURIComponent(last);
  } catch {
    // Not encoded: as it is.
  }
  return /^.{1,80}\.\w{2,5}$/.test(name) ? name : `File ${index + 1}`;
}

/** Of media types: those whose thumbnails are shown. A vector graphic is a program, not a picture. */
export function isPictureType(type: string | null): boolean {
  return type !== null && /^image\/(?!svg)/.test(type);
}

/**
 * The pixels of a thumbnail `height` high: as wide as the picture, up to four times the height; a square if its size is
 * not known.
 */
export function thumbnailSize(
  of: { width: number | null; height: number | null },
  height: number,
): { width: number; height: number } {
  const ratio = of.width && of.height ? of.width / of.height : 1;
  return { width: Math.round(height * Math.min(4, Math.max(1 / 4, ratio))), height };
}

export function isPicture(name: string): boolean {
  return /\.(avif|bmp|gif|heic|jpe?g|png|svg|tiff?|webp)$/i.test(name);
}

/** The class for Airtable's name of a color: `blueLight2`, `grayDark1`. */
export function colorClass(color: string | undefined): string {
  const [, hue, shade] =
    /^(blue|cyan|teal|green|yellow|orange|red|pink|purple|gray)(\w*)$/.exec(color ?? "") ?? [];
  if (!hue) return "tag";
  return /^(Light|$)/.test(shade ?? "") ? `tag ${hue}` : `tag ${hue} strong`;
}

function grouped(digits: string): string {
  const [, sign, whole, rest] = /^(-?)(\d+)(.*)$/.exec(digits) ?? [];
  if (whole === undefined) return digits;
  return `${sign}${whole.replaceAll(/\B(?=(\d{3})+$)/g, ",")}${rest}`;
}

function trimmed(number: number, precision: number): string {
  return number.toFixed(Math.min(precision, 20));
}
