/** The page "For analysts" of a base, and its files. */
import { Elysia } from "elysia";
import type { Account } from "../../../../core/control/accounts";
import { getBase, replicaShape } from "../../../../core/control/bases";
import { dbtSources, erDiagram } from "../../../../core/exports";
import { AnalystsPage } from "../../../../views/base/analysts";
import { BaseFrame } from "../../../../views/base/frame";
import { securityHeaders } from "../../../../views/render";
import { answer, type ConsoleContext, signedIn } from "../../page-kit";

export function analystPages(ctx: ConsoleContext) {
  async function describe(id: string, account: Account) {
    const base = await getBase(ctx.db, id, account.id);
    const shape = await replicaShape(ctx, base);
    return { base, sources: dbtSources(base, shape), diagram: erDiagram(shape.tables) };
  }

  return new Elysia({ name: "analyst-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases/:id/analysts", async ({ request, currentUser, account, params }) => {
      const facts = await describe(params.id, account);
      return answer(
        request,
        { title: `For analysts · ${facts.base.name}`, currentUser, active: "bases", base: facts.base },
        <BaseFrame base={facts.base} place="analysts">
          <AnalystsPage {...facts} />
        </BaseFrame>,
      );
    })
    .get("/bases/:id/dbt-sources.yml", async ({ account, params }) => {
      const { sources } = await describe(params.id, account);
      return file("sources.yml", "text/yaml", sources);
    })
    .get("/bases/:id/er-diagram.mmd", async ({ account, params }) => {
      const { diagram } = await describe(params.id, account);
      return file("er-diagram.mmd", "text/plain", diagram);
    });
}

function file(name: string, type: string, text: string): Response {
  return new Response(text, {
    headers: {
      ...securityHeaders,
      "cache-control": "no-store",
      "content-type": `${type}; charset=utf-8`,
      "content-disposition": `attachment; filename="${name}"`,
    },
  });
}
