/** Connected bases: connecting, changing and deleting one, what is copied of it, and the actions on its overview. */
import {
  type Base,
  createBase,
  deleteBase,
  EVERYTHING,
  listBases,
  readSelectable,
  recheckFeed,
  requestResync,
  resolveIndexes,
  resolveMutedFields,
  resolveOwnNames,
  resyncEffect,
  selectableJson,
  selectionFromJson,
  selectionJson,
  setSelection,
  settingsFromJson,
  updateSettings,
} from "../../../core/control/bases";
import { getDatabase } from "../../../core/control/placement";
import { baseJson, baseJsons } from "../../../core/control/status";
import type { SourceSchema } from "../../../core/source";
import { DeletePage, nameToType } from "../../../views/base/delete";
import { typedText } from "../../../views/components";
import { onBase } from "../base-page";
import { inFigures, pageSizeOf } from "../change-figures";
import type { ReadForm } from "../resource-kit/read-form";
import { ofAccount, ofBase, resource } from "../resource-kit/resource";
import * as schemas from "../schemas";
import { cachedSelectable } from "../selectable-cache";

const API = "/api/v1/bases";
const ONE = `${API}/:id`;
const PAGE = "/bases/:id";

export const basesResource = resource({ tag: "Bases", scope: ofAccount })
  .all({
    api: `GET ${API}`,
    summary: "The account's bases",
    answer: schemas.bases,
    run: async ({ db }, account) => baseJsons(db, await listBases(db, account.id)),
  })
  .all({
    api: `POST ${API}`,
    summary: "Connect a base and start syncing",
    raises: [
      "not_found",
      "already_exists",
      "destination_invalid",
      "source_key_refused",
      "source_forbidden",
      "source_not_found",
    ],
    status: 201,
    body: schemas.newBase,
    answer: schemas.base,
    run: async (ctx, account, body) =>
      baseJson(
        ctx.db,
        await createBase(ctx, account.id, {
          platform: body.platform,
          apiKey: body.api_key,
          sourceBaseId: body.base_id,
          destination: body.destination,
          settings: body.settings && settingsFromJson(body.settings),
          selection: body.selection && selectionFromJson(body.selection),
          workspaceId: body.workspace_id,
        }),
      ),
  });

export const baseResource = resource({
  tag: "Bases",
  params: schemas.idParams,
  scope: ofBase,
  console: onBase("overview"),
})
  .all({
    api: `GET ${ONE}`,
    summary: "One base",
    answer: schemas.base,
    run: ({ db }, base) => baseJson(db, base),
  })
  .all({
    api: `PATCH ${ONE}`,
    summary: "Change settings, the workspace, or the API key",
    description: "Omitted fields stay unchanged.",
    raises: ["conflict", "source_key_refused", "source_forbidden", "source_not_found"],
    body: schemas.settingsChange,
    answer: schemas.base,
    run: async (ctx, base, body) =>
      baseJson(
        ctx.db,
        await updateSettings(ctx, base, {
          ...settingsFromJson(body),
          indexes: body.indexes && (await resolveIndexes(ctx, base, body.indexes)),
          ownNames: body.own_names && (await resolveOwnNames(ctx, base, body.own_names)),
          mutedFields: body.muted_fields && (await resolveMutedFields(ctx, base, body.muted_fields)),
          apiKey: body.api_key,
          workspaceId: body.workspace_id,
        }),
      ),
  })
  .all({
    api: `DELETE ${ONE}`,
    summary: "Delete a base and its synced data",
    description: "Data in a database that you host stays there.",
    raises: ["conflict"],
    run: (ctx, base) => deleteBase(ctx, base),
  })
  .all({
    api: `POST ${ONE}/sync`,
    summary: "Resync a base",
    raises: ["conflict"],
    status: 202,
    answer: schemas.base,
    run: async (ctx, base) => baseJson(ctx.db, await requestResync(ctx, base)),
    form: {
      path: `${PAGE}/sync`,
      to: PAGE,
      done: "Resync requested. It starts in a moment.",
      asks: (base, ctx) => ({
        title: `Resync ${base.name || base.sourceBaseId}?`,
        effect: (
          <p>
            Every record is read from Airtable again: {inFigures(resyncEffect(base, pageSizeOf(ctx, base)))}.
          </p>
        ),
        button: "Resync",
        back: PAGE,
      }),
    },
  })
  .all({
    run: (ctx, base) => updateSettings(ctx, base, { turbo: true }),
    form: { path: `${PAGE}/turbo`, to: PAGE, done: "Turbo is on. You can turn it off in Settings." },
  })
  .all({
    run: recheckFeed,
    form: {
      path: `${PAGE}/live/check`,
      to: PAGE,
      done: "Asking Airtable again. The result shows here in a moment.",
    },
  })
  .all({
    api: `GET ${ONE}/selection`,
    summary: "What of the base is copied, and what could be",
    description: "Costs one call to Airtable, at most twice a minute.",
    raises: ["source_key_refused", "source_forbidden", "source_not_found"],
    answer: schemas.selectionAnswer,
    run: async (ctx, base) => shownSelection(base, await cachedSelectable(ctx, base)),
  })
  .all({
    api: `PUT ${ONE}/selection`,
    summary: "Choose what is copied",
    description:
      "Replaces the whole selection: tables that are not listed are treated as `new_tables` says, fields that are not listed are copied. Only tables that get other columns are read again. Costs one call to Airtable.",
    raises: ["conflict", "source_key_refused", "source_forbidden", "source_not_found"],
    body: schemas.selectionChange,
    answer: schemas.selectionAnswer,
    async run(ctx, base, body) {
      const asked = selectionFromJson(body);
      const schema = await readSelectable(ctx, base);
      return shownSelection(await setSelection(ctx, base, asked, schema), schema);
    },
  });

function shownSelection({ selection, unansweredTables }: Base, schema: SourceSchema) {
  return {
    selection: selectionJson(selection ?? EVERYTHING),
    unanswered: unansweredTables.map(({ id, name }) => ({ tableId: id, name })),
    available: selectableJson(schema),
  };
}

/** The console asks for the base's name before a deletion. */
export const baseDeletion = resource({
  tag: "Bases",
  scope: ofBase,
  console: {
    ...onBase("settings"),
    all: {
      path: `${PAGE}/delete`,
      title: (base) => `Delete ${base.name}`,
      show: async ({ db }, base, { form }) => (
        <DeletePage
          base={base}
          isHosted={(await getDatabase(db, base.database.id)).clusterId !== null}
          typed={form && typedText(form, "name")}
          error={form?.errors.name}
        />
      ),
    },
  },
}).all({
  run: (ctx, base) => deleteBase(ctx, base),
  form: {
    path: `${PAGE}/delete`,
    fields: { name: { kind: "text", label: "Name" } },
    read(typed, base): ReadForm {
      const isSame = typedText({ typed }, "name").replace(/\s+/g, " ") === nameToType(base);
      return { body: {}, errors: isSame ? {} : { name: "This is not the name of the base" } };
    },
    to: "/bases",
    done: (_, base) => `${base.name || base.sourceBaseId} is being deleted.`,
  },
});
