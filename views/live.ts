/** Attributes of a fragment that refreshes itself; the console's script pauses it while the page is hidden. */
export function live(url: string, everySeconds: number) {
  return {
    "data-live": true,
    "hx-get": url,
    "hx-trigger": `every ${everySeconds}s`,
    "hx-swap": "outerMorph",
    // After an error the page keeps its content, and the next poll updates it.
    "hx-status:4xx": "swap:none",
    "hx-status:5xx": "swap:none",
  };
}
