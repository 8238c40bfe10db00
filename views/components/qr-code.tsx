/** A QR code as SVG, dark on light in both themes: some cameras read no others. */
import { encode } from "uqr";

/** Modules of empty space around it, which the standard demands. */
const BORDER = 4;

export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: BORDER });
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <rect class="light" width={size} height={size} />
      <path class="dark" d={data.map(rowPath).join("")} />
    </svg>
  );
}

/** One rectangle for each run of dark modules. */
function rowPath(row: boolean[], y: number): string {
  const dark = row.map((isDark) => (isDark ? "#" : " ")).join("");
  return [...dark.matchAll(/#+/g)]
    .map(({ 0: { length }, index }) => `M${index} ${y}h${length}v1h-${length}z`)
    .join("");
}
