/** The pages of one base: overview with the sync state and tables, freshness, schema changes, issues, runs. */
import { Elysia } from "elysia";
import {
  type Base,
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
import { serverNow } from "../../../../core/postgres";
import { SchemaChanges } from "../../../../views/base/changes";
import { BaseFrame } from "../../../../views/base/frame";
import { FreshnessPage } from "../../../../views/base/freshness";
import { IssueRecords } from "../../../../views/base/issue-records";
import { IssuesPage } from "../../../../views/base/issues";
import { BaseList, BaseRows, isFreshList } from "../../../../views/base/list";
import { needsSlowFacts, Overview, OverviewNews, type SlowFacts } from "../../../../views/base/overview";
import { RunsPage } from "../../../../views/base/runs";
import { isHtmx } from "../../../../views/render";
import { onOneBase } from "../../base-page";
import { type ConsoleContext, finish, formText, noNews, signedIn } from "../../page-kit";
import { requireReadable } from "../../readable";
import { LISTED, LISTED_ON_PAGE } from "../../schemas/parts";
import { cachedTables } from "../../shape-cache";
import { readChoice } from "./base-choice";
import { readList } from "./base-listing";

export function basePages(ctx: ConsoleContext) {
  const { db } = ctx;

  async function currentFacts(base: Base) {
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

  const listPage = new Elysia()
    .use(signedIn(ctx))
    .get("/bases", async ({ request, page, account, query }) => {
      if (isHtmx(request) && isFreshList(query.at, new Date())) return noNews();
      const list = await readList(db, account.id, readChoice(query));
      const view = isHtmx(request) ? <BaseRows {...list} /> : <BaseList {...list} />;
      return page({ title: "Bases", active: "bases" }, view);
    });
  const pages = new Elysia()
    .use(onOneBase(ctx))
    .get("/bases/:id", async ({ page, base }) => {
      const facts = await currentFacts(base);
      const view = (
        <BaseFrame base={base} place="overview">
          <Overview {...facts} {...(await slowFacts(base, facts.now))} />
        </BaseFrame>
      );
      return page({ title: base.name, active: "bases", base }, view);
    })
    .get("/bases/:id/live", async ({ page, base, query }) => {
      const facts = await currentFacts(base);
      const slowAt = Number(query.at);
      const slow = needsSlowFacts(slowAt, facts.now) ? await slowFacts(base, facts.now) : null;
      const view = <OverviewNews {...facts} slow={slow} slowAt={slowAt} seen={textOf(query.seen)} />;
      return page({ title: base.name, active: "bases", base }, view);
    })
    .get("/bases/:id/freshness", async ({ base, basePage, query }) => {
      const [now, range] = [serverNow(base), textOf(query.range)];
      const known = Object.hasOwn(historyRanges, range) ? (range as HistoryRange) : undefined;
      const view = <FreshnessPage base={base} history={await baseHistory(db, base, known, now)} now={now} />;
      return basePage({ place: "freshness", title: "Freshness" }, view);
    })
    .get("/bases/:id/runs", async ({ base, basePage }) => {
      const view = <RunsPage runs={await listRuns(db, base.id, LISTED_ON_PAGE)} now={serverNow(base)} />;
      return basePage({ place: "runs", title: "Runs" }, view);
    })
    .get("/bases/:id/schema-changes", async ({ base, basePage }) => {
      const changes = await listSchemaChanges(db, base.id, LISTED);
      const view = <SchemaChanges changes={changes} now={serverNow(base)} />;
      return basePage({ place: "schema", title: "Schema changes" }, view);
    })
    .get("/bases/:id/issues", async ({ base, basePage }) => {
      const hasFields = base.issueCount > 0 || base.settings.mutedFields.length > 0;
      const shape = hasFields ? await cachedTables(ctx, base) : [];
      return basePage({ place: "issues", title: "Issues" }, <IssuesPage base={base} shape={shape} />);
    })
    .get("/bases/:id/issues/records", async ({ currentUser, base, basePage, query }) => {
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
      return basePage({ place: "issues", title: "Issues" }, view);
    })
    .post("/bases/:id/issues/mute", async ({ request, base, by, body }) => {
      const field = { table_id: formText(body, "table_id"), field_id: formText(body, "field_id") };
      const isMuted = formText(body, "muted") === "on";
      const others = base.settings.mutedFields
        .map(({ tableId, fieldId }) => ({ table_id: tableId, field_id: fieldId }))
        .filter(({ table_id, field_id }) => table_id !== field.table_id || field_id !== field.field_id);
      const mutedFields = await resolveMutedFields(ctx, base, isMuted ? [...others, field] : others);
      await updateSettings(by, base, { mutedFields });
      const text = isMuted
        ? "Muted. Issues of this field do not count."
        : "Issues of this field count again.";
      return finish(request, `/bases/${base.id}/issues`, text);
    });
  return new Elysia({ name: "base-pages", detail: { hide: true } }).use(listPage).use(pages);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
