/**
 * Measures the data browser on a table of 300,000 rows: its first page, a page far in, every column as the order, and a
 * filter that few rows match, each as a whole page over HTTP, compressed, by a signed-in user.
 *
 * The base is synced from a sandbox with a small table, whose rows are then multiplied in the replica.
 * Run: `bun run bench data-browser`, with DATA_BROWSER_ROWS (300000).
 */
import postgres from "postgres";
import { startConsole } from "../../apps/console/start";
import { updateSettings } from "../../core/control/bases";
import { databaseUrl } from "../../core/replica";
import { projectBase } from "../support/data-scene";
import { startFleet } from "../support/fleet";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const ROWS = Number(process.env.DATA_BROWSER_ROWS ?? 300_000);
const SAMPLES = 7;
const WARM_UP = 2;
const LIMITS = { firstMs: 100, sortedMs: 1000, bytes: 60_000 };
const FIELDS = ["title", "status", "areas", "project", "done", "estimate", "budget", "due", "owner", "files"];
const COLUMNS = [...FIELDS, "priority", "link", "notes", "created_time", "id"];

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const options = { databaseUrl: server.url, env: { REPLICA_URL: server.url }, leavesBases: true };
  const fleet = releases.use(await startFleet(options));
  const base = await fleet.connect(projectBase(fleet.sandbox), { turbo: true });
  await fleet.synced(base.id);
  await updateSettings(fleet.ctx, base, { paused: true });
  await multiply(databaseUrl(server.url, base.database.name));
  const counted = JSON.stringify({ records: ROWS });
  await fleet.ctx.db`
    update bases set tables = (
      select jsonb_agg(case t ->> 'name' when 'tasks' then t || ${counted}::text::jsonb else t end)
      from jsonb_array_elements(tables) as t)
    where id = ${base.id}`;
  const running = await startConsole(fleet.ctx, { port: 0 });
  releases.defer(() => running.stop());
  const origin = `http://localhost:${running.port}`;
  const cookie = await signIn(origin);
  const ask = (query: string) => measure(`${origin}/bases/${base.id}/data/tasks${query}`, cookie);

  const first = await ask("");
  const deep = await ask(`?sort=id&after=rec${String(Math.floor(ROWS * 0.8)).padStart(14, "0")}`);
  const rare = await ask("?f=title&o=contains&v=copy+2999");
  const figures = [
    figure("the first page, ms", first.ms, LIMITS.firstMs),
    figure("the first page, compressed, bytes", first.bytes, LIMITS.bytes),
    figure("a page after four fifths of the rows, ms", deep.ms, LIMITS.firstMs),
    figure("a filter on text that few rows match, ms", rare.ms, LIMITS.sortedMs),
  ];
  for (const column of COLUMNS) {
    for (const dir of ["asc", "desc"]) {
      const { ms } = await ask(`?sort=${column}&dir=${dir}`);
      figures.push(figure(`by ${column} ${dir}, ms`, ms, LIMITS.sortedMs));
    }
  }
  table(
    ["what", "measured", "limit", "ratio"],
    figures.map(({ name, value, limit, text }) => [name, Math.round(value), limit, text]),
  );
  return figures.every(({ isWithin }) => isWithin);
}

function figure(name: string, value: number, limit: number) {
  return { name, value, limit, ...ratio(value / limit, 1) };
}

/** Rows as the sandbox's, with an id, a title and figures of their own. */
async function multiply(url: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe(`
    create temporary table few as
      select *, row_number() over (order by id) as n, count(*) over () as many from public.tasks;
    delete from public.tasks;
    insert into public.tasks (id, created_time, title, status, areas, project, done, estimate, budget, due, owner, files,
        priority, link, notes)
      select 'rec' || lpad(g::text, 14, '0'), f.created_time + g * interval '1 second', f.title || ' copy ' || g, f.status,
        f.areas, f.project, f.done, f.estimate + g % 97, f.budget + g % 1009, f.due + g % 365, f.owner, f.files, f.priority,
        f.link || '/' || g, f.notes || g
      from generate_series(1, ${ROWS}) as g join few as f on f.n = g % f.many + 1`);
  await sql.unsafe("vacuum analyze public.tasks");
  await sql.end();
}

async function signIn(origin: string): Promise<string> {
  const answer = await fetch(`${origin}/sign-in`, {
    method: "POST",
    body: new URLSearchParams({ email: "fleet@example.org", password: "correct horse" }),
    headers: { origin, accept: "text/html" },
    redirect: "manual",
  });
  if (answer.status !== 303) throw new Error(`Not signed in: ${answer.status}`);
  return answer.headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");
}

/** The median of some requests. */
async function measure(url: string, cookie: string): Promise<{ ms: number; bytes: number }> {
  const times: number[] = [];
  let bytes = 0;
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    const startedAt = performance.now();
    const headers = { cookie, accept: "text/html", "accept-encoding": "gzip" };
    const answer = await fetch(url, { headers, decompress: false });
    bytes = (await answer.arrayBuffer()).byteLength;
    if (sample >= 0) times.push(performance.now() - startedAt);
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
  }
  return { ms: times.toSorted((one, other) => one - other)[SAMPLES >> 1]!, bytes };
}
