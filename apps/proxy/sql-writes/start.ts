/** Opens the endpoint of SQL writes, and answers its requests. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import type { Context } from "../../../core/context";
import { writeAccessOf } from "../../../core/control/bases";
import { listWrites, type WritesSource } from "../../../core/control/change-sets";
import { cutText } from "../../../core/cut-text";
import { BaseCalls } from "../change-sets/base-calls";
import { carryOutWrites } from "./carry-out-awaited";
import { UnfitValue } from "./cells";
import { type EndpointAnswer, openWriteEndpoint, type WriteEndpointServer } from "./endpoint";
import { convertOperation, MOST_SESSION_TEXT, writtenOperations } from "./operations";
import type { SqlError } from "./sqlstates";

/** Rows of `write.log`. */
const MOST_LOGGED = 1000;

const request = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("hello") }),
  z.object({ kind: z.literal("log"), user: z.string() }),
  z.object({
    kind: z.literal("write"),
    user: z.string(),
    application: z.string(),
    note: z.nullable(z.string()),
    /** The id of the set that is carried out in the background. */
    submitted: z._default(z.nullable(z.string()), null),
    typecast: z.boolean(),
    types: z.nullable(z.record(z.string(), z.string())),
    operations: writtenOperations,
  }),
]);
type WriteRequest = Extract<z.infer<typeof request>, { kind: "write" }>;

type StartContext = Pick<Context, "config" | "db" | "log" | "secrets">;

/**
 * @param fetch this proxy, which the calls go through
 * @returns undefined if `WRITE_PORT` is not set
 * @throws BasetideError `port_taken`
 */
export async function startSqlWrites(
  ctx: StartContext,
  fetch: (request: Request) => Response | Promise<Response>,
): Promise<WriteEndpointServer | undefined> {
  const { config, log } = ctx;
  if (config.writePort === undefined) return undefined;
  const lastSources = new Map<string, WritesSource>();
  return openWriteEndpoint({
    port: config.writePort,
    host: config.host,
    tls: tlsOf(config),
    log,
    accessOf: (baseId) => writeAccessOf(ctx, baseId),
    async answer(baseId, body, gone) {
      const { data: asked, error: malformed } = request.safeParse(body);
      if (!asked) return { answer: malformedRequest(malformed) };
      if (asked.kind === "hello") return { answer: { ok: true } };
      if (asked.kind === "log") return { answer: { rows: await logged(ctx, baseId, asked.user) } };
      try {
        return await write({ ctx, lastSources, fetch }, baseId, asked, gone);
      } catch (error) {
        log.warn({ error, baseId }, "a SQL write failed");
        const failure = {
          sqlstate: "08007",
          message: "Basetide failed: Airtable may have made the change",
          hint: "write.log shows what became of it.",
        } satisfies SqlError;
        return { answer: failure };
      }
    },
  });
}

/** The client may have set what only the functions of the schema should. */
function malformedRequest({ issues: [issue] }: z.core.$ZodError): SqlError {
  const at = issue?.path.join(".");
  const message = `The request is malformed at ${at}: nothing was sent to Airtable`;
  return { sqlstate: "22023", message, hint: "Reset the settings basetide.* of the session." };
}

/** @throws Error if a file cannot be read */
function tlsOf({ writeTlsCertificate, writeTlsKey }: Context["config"]) {
  if (writeTlsCertificate === undefined || writeTlsKey === undefined) return undefined;
  return { cert: readFileSync(writeTlsCertificate), key: readFileSync(writeTlsKey) };
}

interface Writing {
  ctx: StartContext;
  lastSources: Map<string, WritesSource>;
  fetch(request: Request): Response | Promise<Response>;
}

async function write(
  { ctx, lastSources, fetch }: Writing,
  baseId: string,
  { operations, types, ...asked }: WriteRequest,
  gone: AbortSignal,
): Promise<EndpointAnswer> {
  const converted = [];
  for (const written of operations) {
    try {
      converted.push(convertOperation(written, types ?? {}));
    } catch (error) {
      if (!(error instanceof UnfitValue)) throw error;
      const { fieldId: field, message, sqlState: sqlstate } = error;
      return { answer: { sqlstate, message, table: written.table, field } satisfies SqlError };
    }
  }
  let rest: Promise<void> | undefined;
  const answer = await carryOutWrites(
    {
      ctx,
      lastSources,
      gone,
      later: (work) => {
        rest = work;
      },
      callsOf: (sourceBaseId, apiKey, stop) =>
        new BaseCalls(fetch, ctx.config, { sourceBaseId, apiKey, stop }),
    },
    {
      baseId,
      sqlRole: asked.user,
      applicationName: cutText(asked.application, MOST_SESSION_TEXT),
      note: cutText(asked.note ?? "", MOST_SESSION_TEXT),
      typecast: asked.typecast,
      submitted: asked.submitted ?? undefined,
      operations: converted,
    },
  );
  return rest ? { answer, rest } : { answer };
}

async function logged(ctx: StartContext, baseId: string, role: string) {
  const writes = await listWrites(ctx, baseId, { role, limit: MOST_LOGGED });
  return writes.map((one) => ({
    set: one.set,
    at: one.at,
    user: one.role,
    application_name: one.applicationName,
    table: one.table,
    record: one.recordId,
    operation: one.operation,
    state: one.state,
    error: one.error,
  }));
}
