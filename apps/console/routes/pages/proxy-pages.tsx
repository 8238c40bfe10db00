/** The page "Proxy" of a base: programs with the base's own names, and a trial in a sandbox. */
import { Elysia } from "elysia";
import { type Base, readRecordRow } from "../../../../core/control/bases";
import { BasetideError, isBasetideError } from "../../../../core/errors";
import { factsOf } from "../../../../core/source";
import { isWriter, ProxyPage, type ProxyProps } from "../../../../views/base/proxy";
import { proxyEndpoint } from "../../../../views/base/snippets";
import { type WriteExample, writeExampleOf } from "../../../../views/base/write-snippets";
import { type BaseCall, onOneBase } from "../../base-page";
import { type FormError, formResultOf } from "../../form-error";
import { type ConsoleContext, goTo } from "../../page-kit";
import { cachedShape } from "../../shape-cache";
import { TimedCache } from "../../timed-cache";
import { isSandbox, tryWrite } from "../../try-write";

export function proxyPages(ctx: ConsoleContext) {
  const { config } = ctx;
  /** The columns come from the replica, which is a connection away. */
  const examples = new TimedCache<WriteExample | null>({ most: 200 });
  const exampleFor = (base: Base) => examples.get(base.id, () => readExample(base));

  async function readExample(base: Base) {
    const at = {
      endpoint: proxyEndpoint(config.proxyUrl),
      baseId: base.sourceBaseId,
      schema: base.database.schema,
    };
    try {
      const { tables } = await cachedShape(ctx, base);
      const records = new Map(base.tables.map((table) => [table.name, table.records]));
      return writeExampleOf(
        at,
        tables.toSorted((a, b) => (records.get(b.name) ?? 0) - (records.get(a.name) ?? 0)),
      );
    } catch (error) {
      // The page is of use without names of the base.
      if (isBasetideError(error, "replica_unavailable")) return null;
      throw error;
    }
  }

  async function show(
    { base, basePage }: BaseCall,
    query: Record<string, string | undefined>,
    failed?: FormError,
  ) {
    const [example, canTry] = await Promise.all([exampleFor(base), isSandbox(config)]);
    const recordId = query.tried;
    const isTried = canTry && example !== null && isRecordId(base, recordId);
    const row = isTried ? await readRecordRow(ctx, base, example.table, recordId) : null;
    const props: ProxyProps = {
      base,
      proxyUrl: config.proxyUrl,
      consoleUrl: config.consoleUrl,
      example,
      writer: isWriter(query.with) ? query.with : "curl",
      canTry,
      tried: isTried ? { recordId, row } : undefined,
      error: failed?.message,
    };
    const page = { place: "proxy", title: "Proxy", status: failed?.status } as const;
    return basePage(page, <ProxyPage {...props} />);
  }

  return new Elysia({ name: "proxy-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/proxy", (call) => show(call, call.query))
    .post("/bases/:id/proxy/try", async (call) => {
      const { request, base, query } = call;
      const { failed, value: recordId } = await formResultOf(async () => {
        const example = await exampleFor(base);
        if (!example)
          throw new BasetideError(
            "conflict",
            "The first sync has not finished a table with a text field yet",
          );
        return tryWrite(ctx, base, example);
      });
      if (failed) return show(call, query, failed);
      const writer = isWriter(query.with) ? query.with : "curl";
      const path = `/bases/${base.id}/proxy?with=${writer}&tried=${encodeURIComponent(recordId)}`;
      return goTo(request, path);
    });
}

function isRecordId({ platform }: Base, text: string | undefined): text is string {
  return text !== undefined && factsOf(platform).ids.isSurely("record", text);
}
