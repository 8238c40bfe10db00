/** API routes for what of a base is copied. */
import { Elysia } from "elysia";
import {
  type Base,
  EVERYTHING,
  getBase,
  type ManagementContext,
  readSelectable,
  selectableJson,
  selectionFromJson,
  selectionJson,
  setSelection,
} from "../../../core/control/bases";
import type { SourceSchema } from "../../../core/source";
import { bearerAuth } from "../bearer-auth";
import * as schemas from "../schemas";
import { raises } from "../schemas/parts";
import { cachedSelectable } from "../selectable-cache";

export function selectionRoutes(ctx: ManagementContext) {
  const { db } = ctx;
  return new Elysia({ prefix: "/api/v1/bases", tags: ["Bases"] })
    .use(bearerAuth(db))
    .get(
      "/:id/selection",
      async ({ account, params }) => {
        const base = await getBase(db, params.id, account.id);
        return toJson(base, await cachedSelectable(ctx, base));
      },
      {
        params: schemas.idParams,
        response: { 200: schemas.selectionAnswer },
        detail: {
          summary: "What of the base is copied, and what could be",
          description: "Costs one call to Airtable, at most twice a minute.",
          ...raises("source_key_refused", "source_forbidden", "source_not_found"),
        },
      },
    )
    .put(
      "/:id/selection",
      async ({ account, actor, body, params }) => {
        const base = await getBase(db, params.id, account.id);
        const asked = selectionFromJson(body);
        const schema = await readSelectable(ctx, base);
        return toJson(await setSelection({ ...ctx, actor }, base, asked, schema), schema);
      },
      {
        params: schemas.idParams,
        body: schemas.selectionChange,
        response: { 200: schemas.selectionAnswer },
        detail: {
          summary: "Choose what is copied",
          description:
            "Replaces the whole selection: tables that are not listed are treated as `new_tables` says, fields that are not listed are copied. Only tables that get other columns are read again. Costs one call to Airtable.",
          ...raises("conflict", "source_key_refused", "source_forbidden", "source_not_found"),
        },
      },
    );
}

function toJson({ selection, unansweredTables }: Base, schema: SourceSchema) {
  return {
    selection: selectionJson(selection ?? EVERYTHING),
    unanswered: unansweredTables.map(({ id, name }) => ({ table_id: id, name })),
    available: selectableJson(schema),
  };
}
