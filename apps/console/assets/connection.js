/*
 * Says when a page that refreshes itself gets no news: after two polls without an answer it shows the age of what is
 * on the page, and grays it out until the next answer.
 */
{
  /** Two polls of two seconds, and a part of the third. */
  const LOST_MS = 4500;
  const TICK_MS = 500;

  let updatedAt = Date.now();
  let banner;

  const isLive = () => document.querySelector("[data-live]") !== null;

  const showAge = () => {
    const seconds = Math.round((Date.now() - updatedAt) / 1000);
    const age = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
    banner.querySelector("[data-age]").textContent = `Last update ${age} ago.`;
  };

  const lose = () => {
    if (!banner) {
      // A landmark, as everything on a page is within one.
      banner = document.createElement("section");
      banner.className = "connection-lost";
      banner.setAttribute("aria-label", "Connection");
      // The sentence is announced once; the age beside it changes every second.
      const sentence = document.createElement("strong");
      sentence.setAttribute("role", "alert");
      const age = document.createElement("span");
      age.dataset.age = "";
      banner.append(sentence, " ", age);
      document.body.append(banner);
      sentence.textContent = "Connection lost.";
    }
    document.documentElement.classList.add("is-stale");
    showAge();
  };

  const restore = () => {
    updatedAt = Date.now();
    banner?.remove();
    banner = undefined;
    document.documentElement.classList.remove("is-stale");
  };

  const check = () => {
    if (document.hidden || !isLive()) return;
    if (Date.now() - updatedAt > LOST_MS) lose();
  };

  document.addEventListener("htmx:after:request", (event) => {
    const { sourceElement, response } = event.detail.ctx;
    if (sourceElement?.matches?.("[data-live]") && response.status < 400) restore();
  });
  // While the page is hidden nothing is polled: it starts again with the poll that follows.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) updatedAt = Date.now();
  });
  addEventListener("offline", () => {
    if (isLive()) lose();
  });
  setInterval(check, TICK_MS);
}
