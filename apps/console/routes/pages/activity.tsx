/** The page of the account's audit log. */
import { Elysia } from "elysia";
import {
  type AuditActor,
  type AuditFilter,
  auditKinds,
  findSubjects,
  listActors,
  listAuditedBases,
  listChanges,
} from "../../../../core/control/audit";
import { Activity, type ActivityChoice, ActivityEntries, whoOf } from "../../../../views/account/activity";
import { subjectsOf } from "../../../../views/account/activity-entry";
import { isHtmx } from "../../../../views/render";
import { type ConsoleContext, formText, signedIn } from "../../page-kit";

const PATH = "/account/activity";
const PAGE_SIZE = 50;

export function activityPages(ctx: ConsoleContext) {
  const { db } = ctx;
  return new Elysia({ prefix: PATH, detail: { hide: true } })
    .use(signedIn(ctx))
    .get("", async ({ request, page, account, query }) => {
      const before = formText(query, "before") || undefined;
      const choice = {
        kind: formText(query, "kind"),
        who: formText(query, "who"),
        base: formText(query, "base"),
      };
      const found = await listChanges(db, {
        ...filterOf(choice),
        accountId: account.id,
        before,
        limit: PAGE_SIZE + 1,
      });
      const entries = found.slice(0, PAGE_SIZE);
      const [subjects, actors, bases] = await Promise.all([
        findSubjects(db, account.id, entries.flatMap(subjectsOf)),
        listActors(db, account.id),
        listAuditedBases(db, account.id),
      ]);
      const chosen = Object.entries(choice).filter(([, value]) => value !== "");
      const older =
        found.length > PAGE_SIZE
          ? `${PATH}?${new URLSearchParams([...chosen, ["before", entries.at(-1)!.id]])}`
          : undefined;
      const listed = { entries, subjects, isFiltered: chosen.length > 0, older, now: new Date() };
      return page(
        { title: "Activity", active: "members" },
        isHtmx(request) ? (
          <ActivityEntries {...listed} />
        ) : (
          <Activity {...listed} {...{ choice, actors: withChosen(actors, choice.who), bases }} />
        ),
      );
    });
}

/** An unknown kind or person is no filter. */
function filterOf({ kind, who, base }: ActivityChoice): AuditFilter {
  return {
    kind: Object.hasOwn(auditKinds, kind) ? (kind as keyof typeof auditKinds) : undefined,
    actor: actorOf(who),
    baseId: base === "" ? undefined : base,
  };
}

function actorOf(who: string): AuditActor | undefined {
  if (who === "operator" || who === "system") return { kind: who };
  const [, kind, name] = /^(user|token):(.*)$/s.exec(who) ?? [];
  return kind && name ? { kind: kind as "user" | "token", name } : undefined;
}

/** The chosen actor stays in the list when its entries are old. */
function withChosen(actors: AuditActor[], who: string): AuditActor[] {
  const chosen = actorOf(who);
  return !chosen || actors.some((actor) => whoOf(actor) === who) ? actors : [...actors, chosen];
}
