/** The pages of one base: overview with the sync state and tables, freshness, schema changes, issues, runs. */
import { Elysia } from "elysia";
import { type Account, actorOf } from "../../../../core/control/accounts";
import {
  type Base,
  getBase,
  listRuns,
  listSchemaChanges,
  recordWatched,
  resolveMutedFields,
  tableChanges,
  updateSettings,
} from "../../../../core/control/bases";
import { budgetOf, quotaUse } from "../../../../core/control/budgets";
import { baseHistory, type HistoryRange, historyRanges, lagHistory } from "../../../../core/control/history";
import { browseIssues } from "../../../../core/data-browser";
import { BasetideError } from "../../../../core/errors";
import { serverNow } from "../../../../core/postgres";
import { SchemaChanges } from "../../../../views/base/changes";
import { BaseFrame } from "../../../../views/base/frame";
import { FreshnessPage } from "../../../../views/base/freshness";
import { IssueRecords } from "../../../../views/base/issue-records";
import { IssuesPage } from "../../../../views/base/issues";
import { BaseList, BaseRows, isFreshList } from "../../../../views/base/list";
import { needsSlowFacts, Overview, OverviewNews, type SlowFacts } from "../../../../views/base/overview";
import type { BasePlace } from "../../../../views/base/pages";
import { RunsPage } from "../../../../views/base/runs";
import { isHtmx } from "../../../../views/render";
import { answerOnBase } from "../../base-page";
import { answer, type ConsoleContext, finish, formText, noNews, signedIn } from "../../page-kit";
import { requireReadable } from "../../readable";
import { LISTED } from "../../schemas/parts";
import { cachedTables } from "../../shape-cache";
import { readChoice } from "./base-choice";
import { readList } from "./base-listing";

const LISTED_RUNS = 200;

export function basePages(ctx: ConsoleContext) {
  const { db } = ctx;

  async function currentFacts(id: string, account: Account) {
    const base = await getBase(db, id, account.id);
    await recordWatched(ctx, base);
    const keyHelpUrl = ctx.platforms.find((platform) => platform.id === base.platform)?.keyHelpUrl;
    return { base, keyHelpUrl, now: serverNow(base) };
  }

  async function slowFacts(base: Base, now: Date): Promise<SlowFacts> {
    const [history, use, budget, changes] = await Promise.all([
      lagHistory(db, base, undefined, now),
      quotaUse(db, base),
      base.workspaceId === null ? null : budgetOf(db, { id: base.workspaceId }, now),
      tableChanges(db, base.id),
    ]);
    return { history, use, budget, changes };
  }

  return new Elysia({ name: "base-pages", detail: { hide: true } })
    .use(signedIn(ctx))
    .get("/bases", async ({ request, currentUser, account, query }) => {
      if (isHtmx(request) && isFreshList(query.at, new Date())) return noNews();
      const list = await readList(db, account.id, readChoice(query));
      const view = isHtmx(request) ? <BaseRows {...list} /> : <BaseList {...list} />;
      return answer(request, { title: "Bases", currentUser, active: "bases" }, view);
    })
    .get("/bases/:id", async ({ request, currentUser, account, params }) => {
      const facts = await currentFacts(params.id, account);
      const view = (
        <BaseFrame base={facts.base} place="overview">
          <Overview {...facts} {...(await slowFacts(facts.base, facts.now))} />
        </BaseFrame>
      );
      return answer(
        request,
        { title: facts.base.name, currentUser, active: "bases", base: facts.base },
        view,
      );
    })
    .get("/bases/:id/live", async ({ request, currentUser, account, params, query }) => {
      const facts = await currentFacts(params.id, account);
      const seen = typeof query.seen === "string" ? query.seen : "";
      const slowAt = Number(query.at);
      const slow = needsSlowFacts(slowAt, facts.now) ? await slowFacts(facts.base, facts.now) : null;
      const view = <OverviewNews {...facts} slow={slow} slowAt={slowAt} seen={seen} />;
      return answer(
        request,
        { title: facts.base.name, currentUser, active: "bases", base: facts.base },
        view,
      );
    })
    .get("/bases/:id/freshness", async ({ request, currentUser, account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      const { range } = query;
      const known = typeof range === "string" && Object.hasOwn(historyRanges, range);
      const history = await baseHistory(
        db,
        base,
        known ? (range as HistoryRange) : undefined,
        serverNow(base),
      );
      const view = <FreshnessPage base={base} history={history} now={serverNow(base)} />;
      return answerOnBase(request, currentUser, base, { place: "freshness", title: "Freshness" }, view);
    })
    .get("/bases/:id/issues/records", async ({ request, currentUser, account, params, query }) => {
      const base = await getBase(db, params.id, account.id);
      await requireReadable(ctx, currentUser, base);
      const names = { table: textOf(query.table), column: textOf(query.field), reason: textOf(query.reason) };
      const after = textOf(query.after);
      const [page, shape] = await Promise.all([
        browseIssues(ctx, base, names, after),
        cachedTables(ctx, base),
      ]);
      const known = base.issues.find(
        ({ table, column, reason }) =>
          table === names.table && column === names.column && reason === names.reason,
      );
      const view = <IssueRecords {...{ base, shape, page }} group={known ?? names} isFirst={after === ""} />;
      return answerOnBase(request, currentUser, base, { place: "issues", title: "Issues" }, view);
    })
    .post("/bases/:id/issues/mute", async ({ request, currentUser, account, params, body }) => {
      const base = await getBase(db, params.id, account.id);
      const field = { table_id: formText(body, "table_id"), field_id: formText(body, "field_id") };
      const isMuted = formText(body, "muted") === "on";
      const others = base.settings.mutedFields
        .map(({ tableId, fieldId }) => ({ table_id: tableId, field_id: fieldId }))
        .filter(({ table_id, field_id }) => table_id !== field.table_id || field_id !== field.field_id);
      const mutedFields = await resolveMutedFields(ctx, base, isMuted ? [...others, field] : others);
      await updateSettings({ ...ctx, actor: actorOf(currentUser) }, base, { mutedFields });
      const text = isMuted
        ? "Muted. Issues of this field do not count."
        : "Issues of this field count again.";
      return finish(request, `/bases/${base.id}/issues`, text);
    })
    .get("/bases/:id/:place", async ({ request, currentUser, account, params }) => {
      const [base, runs] = await Promise.all([
        getBase(db, params.id, account.id),
        params.place === "runs" ? listRuns(db, params.id, LISTED_RUNS) : [],
      ]);
      const page = (place: BasePlace, title: string, view: preact.VNode) =>
        answerOnBase(request, currentUser, base, { place, title }, view);
      if (params.place === "runs")
        return page("runs", "Runs", <RunsPage runs={runs} now={serverNow(base)} />);
      if (params.place === "schema-changes") {
        const changes = await listSchemaChanges(db, base.id, LISTED);
        const view = <SchemaChanges changes={changes} now={serverNow(base)} />;
        return page("schema", "Schema changes", view);
      }
      if (params.place === "issues") {
        const hasFields = base.issueCount > 0 || base.settings.mutedFields.length > 0;
        const shape = hasFields ? await cachedTables(ctx, base) : [];
        return page("issues", "Issues", <IssuesPage base={base} shape={shape} />);
      }
      throw new BasetideError("not_found", "This page does not exist");
    });
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
