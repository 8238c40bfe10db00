/** Small line icons. They repeat what the text next to them says, so screen readers skip them. */

const paths = {
  action: "M13 3 5 14h6l-1 7 8-11h-6z",
  agents:
    "M7 9h10a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-6a2 2 0 0 1 2-2zM12 9V5M9.5 13.5v1M14.5 13.5v1M2.5 13v3M21.5 13v3",
  alerts: "M6 16v-5a6 6 0 0 1 12 0v5l1.5 2h-15zM10 21h4",
  api: "M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 4l-3 16",
  arrow: "M5 12h14M13 6l6 6-6 6",
  bases:
    "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  choose: "M8 9.5 12 5.5l4 4M8 14.5l4 4 4-4",
  close: "M6 6l12 12M18 6 6 18",
  column: "M4 5h16v14H4zM10 5v14M15 5v14",
  dark: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  help: "M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0zM9.5 9.5a2.5 2.5 0 1 1 3.6 2.3c-.7.3-1.1.8-1.1 1.7M12 16.5v.1",
  light:
    "M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1",
  menu: "M4 7h16M4 12h16M4 17h16",
  operator: "M12 3l7 3v6c0 4.5-3 7.5-7 9-4-1.5-7-4.5-7-9V6z",
  search: "M17 11a6 6 0 1 1-12 0 6 6 0 0 1 12 0zM20 20l-4.7-4.7",
  settings:
    "M4 7h10M18 7h2M4 17h2M10 17h10M18 7a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM10 17a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  system: "M4 5h16v11H4zM9 20h6",
  table: "M4 5h16v14H4zM4 10h16M10 10v9",
  members:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.2a3.5 3.5 0 0 1 0 6.6M18 14a6.5 6.5 0 0 1 3.5 6",
  usage: "M5 20v-6M12 20V4M19 20V10",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
