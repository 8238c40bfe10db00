#!/usr/bin/env bash
# tableschema, of Frictionless Data, reads 12:00Z as 12:00 of the local zone, and refuses seconds with a fraction.
#
# tableschema 1.12.6.
#
# Behavior: A field of the type datetime accepts only the form 2026-07-01T12:00:00Z, which is UTC by the specification. Its value is the Date of that time in
# the zone of the process. Airtable's times have milliseconds, which it refuses; "format": "any" reads them, and the Z. A bigger whole number than 2^53 is
# refused, too, while a decimal number is rounded.
#
# Who meets it: Programs that read the CSV files of a base with a Table Schema, anywhere but in UTC.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts tableschema@1.12.6 >/dev/null
cat >main.mjs <<'JS'
import tableschema from "tableschema";

function show(type, text, format = "default") {
  let value;
  try {
    value = new tableschema.Field({ name: "field", type, format }).castValue(text);
  } catch {
    value = "refused";
  }
  console.log(`${process.env.TZ}: ${type}${format === "default" ? "" : ` (${format})`} ${text} ->`, value.toISOString?.() ?? String(value));
}
show("datetime", "2026-07-01T12:00:00Z");
show("datetime", "2026-07-01T12:00:00Z", "any");
show("datetime", "2026-07-01T12:00:00.000Z");
show("datetime", "2026-07-01T12:00:00.000Z", "any");
if (process.env.TZ === "UTC") {
  show("integer", "9007199254740993");
  show("number", "9007199254740993.5");
}
JS
seen=$(for zone in UTC America/New_York Asia/Kolkata; do TZ=$zone node --no-deprecation main.mjs; done)
expected=$(
  cat <<'END'
UTC: datetime 2026-07-01T12:00:00Z -> 2026-07-01T12:00:00.000Z
UTC: datetime (any) 2026-07-01T12:00:00Z -> 2026-07-01T12:00:00.000Z
UTC: datetime 2026-07-01T12:00:00.000Z -> refused
UTC: datetime (any) 2026-07-01T12:00:00.000Z -> 2026-07-01T12:00:00.000Z
UTC: integer 9007199254740993 -> refused
UTC: number 9007199254740993.5 -> 9007199254740994
America/New_York: datetime 2026-07-01T12:00:00Z -> 2026-07-01T16:00:00.000Z
America/New_York: datetime (any) 2026-07-01T12:00:00Z -> 2026-07-01T12:00:00.000Z
America/New_York: datetime 2026-07-01T12:00:00.000Z -> refused
America/New_York: datetime (any) 2026-07-01T12:00:00.000Z -> 2026-07-01T12:00:00.000Z
Asia/Kolkata: datetime 2026-07-01T12:00:00Z -> 2026-07-01T06:30:00.000Z
Asia/Kolkata: datetime (any) 2026-07-01T12:00:00Z -> 2026-07-01T12:00:00.000Z
Asia/Kolkata: datetime 2026-07-01T12:00:00.000Z -> refused
Asia/Kolkata: datetime (any) 2026-07-01T12:00:00.000Z -> 2026-07-01T12:00:00.000Z
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
