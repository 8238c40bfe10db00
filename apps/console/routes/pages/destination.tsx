/** The onboarding step for the destination. A customer's own database is checked before the next step. */

import { Elysia } from "elysia";
import { isProblem } from "../../../../core/check-result";
import { type Draft, setDraftDestination } from "../../../../core/control/onboarding";
import {
  checkSchemaName,
  type Destination,
  databaseContents,
  listRegions,
  regionOfAccount,
} from "../../../../core/control/placement";
import { snakeCase } from "../../../../core/replica";
import {
  type DestinationForm,
  DestinationFormView,
  type DestinationKind,
  type DestinationProps,
  DestinationStep,
} from "../../../../views/onboarding/destination";
import { stepPath } from "../../../../views/onboarding/frame";
import { isHtmx } from "../../../../views/render";
import { type DraftCall, elsewhere, onOneDraft, stepPage } from "../../draft-page";
import { type FormError, formResultOf } from "../../form-error";
import { type ConsoleContext, formText, goTo } from "../../page-kit";

export function destinationPages(ctx: ConsoleContext) {
  const { db } = ctx;

  async function show(
    { request, page, draft }: DraftCall,
    shown: Partial<DestinationProps>,
    status?: number,
  ) {
    const [databases, regions, region] = await Promise.all([
      databaseContents(db, draft.accountId),
      listRegions(db),
      regionOfAccount(ctx, draft.accountId),
    ]);
    const props = { draft, databases, regions, form: keptForm(draft, region), errors: {}, ...shown };
    const view = isHtmx(request) ? <DestinationFormView {...props} /> : <DestinationStep {...props} />;
    return page(stepPage("Destination", status), view);
  }

  return new Elysia({ detail: { hide: true } })
    .use(onOneDraft(ctx))
    .get("/:id/destination", (call) => elsewhere(call, "destination") ?? show(call, {}))
    .post("/:id/destination", async (call) => {
      const { request, draft, body } = call;
      const form = readForm(body, draft);
      const isTest = formText(body, "test") !== "";
      const next = stepPath(draft, "start");
      if (form.kind === "external" && form.url === "" && draft.destination?.kind === "external" && !isTest) {
        return goTo(request, next);
      }
      const { failed: schemaError } = await formResultOf(async () =>
        form.kind === "new" ? undefined : checkSchemaName(schemaOf(form)),
      );
      if (schemaError) {
        const field = form.kind === "existing" ? "schema" : "externalSchema";
        return show(call, { form, errors: { [field]: schemaError.message } }, 422);
      }
      const { failed, value: results } = await formResultOf(() =>
        setDraftDestination(ctx, draft, toDestination(form)),
      );
      if (failed) return show(call, { form, errors: errorsByField(form.kind, failed) }, failed.status);
      const isUsable = results.every((one) => !isProblem(one));
      if (isUsable && !isTest) return goTo(request, next);
      const errors = isUsable
        ? {}
        : { url: "This database cannot be used yet. See below for what is missing." };
      // Only a database that was checked has results.
      const shown = form.kind === "external" && results.length > 0 ? { results } : {};
      return show(call, { form, errors, ...shown }, isUsable ? 200 : 422);
    });
}

function errorsByField(kind: DestinationKind, formError: FormError): DestinationProps["errors"] {
  if (kind === "external") return { url: formError.message };
  if (kind === "existing")
    return formError.status === 404 ? { database: formError.message } : { schema: formError.message };
  return { form: formError.message };
}

function readForm(body: unknown, { sourceBase }: Draft): DestinationForm {
  // The button inside the section of the customer's own database asks for a test.
  const kind = formText(body, "test") === "" ? formText(body, "kind") : "external";
  return {
    kind: kind === "existing" || kind === "external" ? kind : "new",
    region: formText(body, "region"),
    databaseId: formText(body, "database"),
    schema: formText(body, "schema"),
    url: formText(body, "url"),
    externalSchema: formText(body, "external_schema") || suggestSchema(sourceBase?.name ?? ""),
    acceptsPrivileges: formText(body, "accept_privileges") !== "",
  };
}

/** @param region of the account's new databases */
function keptForm({ destination, sourceBase }: Draft, region: string | null): DestinationForm {
  const suggested = suggestSchema(sourceBase?.name ?? "");
  return {
    kind: destination?.kind ?? "new",
    region: (destination?.kind === "new" ? destination.region : undefined) ?? region ?? "",
    databaseId: destination?.kind === "existing" ? destination.database_id : "",
    schema: destination?.kind === "existing" ? destination.schema : suggested,
    url: "",
    externalSchema: destination?.kind === "external" ? destination.schema : suggested,
    acceptsPrivileges: destination?.kind === "external" && destination.accept_privileges === true,
  };
}

/** Suggests a schema named after the base: creating a new schema needs no rights on an existing one. */
function suggestSchema(baseName: string): string {
  const name = snakeCase(baseName)
    .replace(/[^a-z0-9_]/g, "")
    .replace(/^[^a-z]+/, "")
    .slice(0, 40);
  try {
    return checkSchemaName(name);
  } catch {
    return "base";
  }
}

function schemaOf(form: DestinationForm): string {
  return form.kind === "existing" ? form.schema : form.externalSchema;
}

function toDestination(form: DestinationForm): Destination {
  if (form.kind === "existing")
    return { kind: "existing", database_id: form.databaseId, schema: form.schema };
  if (form.kind === "external") {
    const { url, externalSchema: schema, acceptsPrivileges } = form;
    return { kind: "external", url, schema, ...(acceptsPrivileges && { accept_privileges: true }) };
  }
  return form.region === "" ? { kind: "new" } : { kind: "new", region: form.region };
}
