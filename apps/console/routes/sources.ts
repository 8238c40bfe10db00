/** API routes for what can be connected: the platforms, and the bases that a key can read. */
import { Elysia } from "elysia";
import {
  listSourceBases,
  type ManagementContext,
  readSelectableWith,
  selectableJson,
} from "../../../core/control/bases";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";

export function sourceRoutes(ctx: ManagementContext) {
  return new Elysia({ prefix: "/api/v1", tags: ["Sources"] })
    .use(bearerAuth(ctx.db))
    .get(
      "/platforms",
      () =>
        ctx.platforms.map(({ id, name, keyHelpUrl }) => ({
          id,
          name,
          key_help_url: keyHelpUrl,
        })),
      { response: { 200: schemas.platformList }, detail: { summary: "Platforms that can be replicated" } },
    )
    .post(
      "/source-bases",
      async ({ body }) => {
        const bases = await listSourceBases(ctx, body.platform, body.api_key);
        return bases.map(({ id, name, permission }) => ({ id, name, permission }));
      },
      {
        body: schemas.keyCheck,
        response: { 200: schemas.sourceBases },
        detail: {
          summary: "Bases that an API key has access to",
          description: "An invalid key is answered with 422 and Airtable's message.",
          ...raises("source_key_refused", "source_forbidden"),
        },
      },
    )
    .post(
      "/source-tables",
      async ({ body }) => {
        const { platform, base_id: sourceBaseId, api_key: apiKey } = body;
        return selectableJson(await readSelectableWith(ctx, { platform, sourceBaseId, apiKey }));
      },
      {
        body: schemas.sourceBaseKey,
        response: { 200: schemas.selectableTables },
        detail: {
          summary: "Tables, fields and views of a base before it is connected",
          description: "To choose what is copied when it is connected. Costs one call to Airtable.",
          ...raises("source_key_refused", "source_forbidden", "source_not_found"),
        },
      },
    );
}
