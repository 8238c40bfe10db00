/** A process that ends with an uncaught error that contains secrets: those of its arguments. */
import { runProcess } from "../../core/process";

const [, , way = "", ...secrets] = process.argv;

function fault(): Error {
  const [apiKey, password, token] = secrets;
  const cause = new Error(`connecting to postgres://basetide:${password}@127.0.0.1/x with ${apiKey}`);
  const headers = { authorization: `Bearer ${token}`, cookie: `basetide.session_token=${token}` };
  return Object.assign(new Error(`asked with Bearer ${apiKey}`, { cause }), {
    apiKey,
    password,
    request: { headers, url: `postgres://basetide:${password}@127.0.0.1/x` },
    query: `alter role bt_x password '${password}'`,
    environment: `${process.env.SECRET_KEY} ${process.env.DATABASE_URL} ${process.env.SMTP_URL}`,
  });
}

await runProcess("crash", async (ctx, releases) => {
  releases.defer(async () => {});
  ctx.log.error({ error: fault(), ...fault() }, "about to crash");
  // What a failed start leaves running: a queue's timers, connections.
  if (way === "lingering") setInterval(() => {}, 60_000);
  if (way === "stuck") releases.defer(() => new Promise(() => {}));
  if (["start", "lingering", "stuck"].includes(way)) throw fault();
  if (way === "rejection") void Promise.reject(fault());
  if (way === "exception")
    queueMicrotask(() => {
      throw fault();
    });
  if (way === "string") void Promise.reject(fault().message);
});
