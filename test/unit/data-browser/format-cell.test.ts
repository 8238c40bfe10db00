import { expect, test } from "vitest";
import type { BrowsedColumn } from "../../../core/data-browser";
import { colorClass, fileName, formatNumber, formatTime } from "../../../views/data/format-cell";
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
