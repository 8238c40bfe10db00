/** Attributes of a part of a page that asks for news of itself; the console's script keeps it from asking while nobody sees the page. */
export function live(url: string, everySeconds: number) {
  return {
    "data-live": true,
    "hx-get": url,
    "hx-trigger": `every ${everySeconds}s`,
    "hx-swap": "outerMorph",
    // What could not be told now is told later; the page keeps what it shows.
    "hx-status:4xx": "swap:none",
    "hx-status:5xx": "swap:none",
  };
}
