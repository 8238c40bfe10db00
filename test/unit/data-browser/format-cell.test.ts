import { expect, test } from "vitest";
import type { BrowsedColumn } from "../../../core/data-browser";
import {
  colorClass,
  fileName,
  formatNumber,
  formatTime,
  isPictureType,
  thumbnailSize,
} from "../../../views/data/format-cell";
import { webLink } from "../../../views/data/paths";

const number = (digits: string, shownAs: string, display = {}) =>
  formatNumber(digits, { shownAs, display } as unknown as BrowsedColumn);

test("numbers are shown as in Airtable, and never lose digits that a double does not have", () => {
  expect(number("1234567.891", "number", { precision: 1 })).toBe("1,234,567.9");
  expect(number("1234567.891", "number")).toBe("1,234,567.891");
  expect(number("-1234.5", "currency", { precision: 2, symbol: "€" })).toBe("-€1,234.50");
  expect(number("0.123", "percent", { precision: 0 })).toBe("12%");
  expect(number("3", "rating")).toBe("★★★");
  expect(number("12345", "autonumber")).toBe("12345");
  expect(number("12345678901234567890.123", "number", { precision: 1 })).toBe("12345678901234567890.123");
});

test("times, files, colors and links", () => {
  expect(formatTime("2026-11-22 14:30:00")).toBe("2026-11-22 14:30");
  expect(formatTime("2026-11-22 14:30:05.123")).toBe("2026-11-22 14:30:05");
  expect(fileName("https://files.example.com/a/b%20c.pdf?x=1", 0)).toBe("b c.pdf");
  expect(fileName("https://files.example.com/v3/opaque", 1)).toBe("File 2");
  expect([colorClass("blueLight2"), colorClass("tealDark1"), colorClass("x"), colorClass(undefined)]).toEqual(
    ["tag blue", "tag teal strong", "tag", "tag"],
  );
  expect(webLink("javascript:alert(1)")).toBeUndefined();
  expect(webLink("https://example.com/ä")).toBe("https://example.com/%C3%A4");
});

test("a thumbnail is of a picture of pixels, and neither a thread nor a bar", () => {
  const types = [
    "image/png",
    "image/heic",
    "image/svg+xml",
    "application/pdf",
    "text/html",
    "x/image/png",
    null,
  ];
  expect(types.filter(isPictureType)).toEqual(["image/png", "image/heic"]);
  expect(thumbnailSize({ width: 800, height: 400 }, 24)).toEqual({ width: 48, height: 24 });
  expect(thumbnailSize({ width: 9000, height: 10 }, 24)).toEqual({ width: 96, height: 24 });
  expect(thumbnailSize({ width: 10, height: 9000 }, 24)).toEqual({ width: 6, height: 24 });
  expect(thumbnailSize({ width: null, height: 0 }, 24)).toEqual({ width: 24, height: 24 });
});
