/**
 * Airtable's value of a cell as people read it: `2026-13-45`, not `"2026-13-45"`; `#ERROR!`, not `{"error":"#ERROR!"}`.
 *
 * @param json as `_sync_issues` has it; cut JSON is possible, since long values are cut
 */
export function plainValue(json: string): string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return json.replace(/^"/, "");
  }
  return plain(value) ?? json;
}

/** Properties by which an object is known, the first that it has. */
const NAMES = [
  "error",
  "specialValue",
  "name",
  "text",
  "label",
  "filename",
  "email",
  "url",
  "value",
] as const;

function plain(value: unknown): string | undefined {
  if (value === null) return "empty";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) {
    const parts = value.map(plain);
    return value.length > 0 && parts.every((part) => part !== undefined) ? parts.join(", ") : undefined;
  }
  const found = NAMES.map((name) => (value as Record<string, unknown>)[name]).find(
    (one) => one !== undefined,
  );
  return found === undefined || typeof found === "object" ? undefined : String(found);
}
