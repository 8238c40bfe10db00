/** The page of what SQL users have written to a base. */
import { Elysia } from "elysia";
import { listAllWrites, listWrites } from "../../../../core/control/change-sets";
import { listSqlUsers } from "../../../../core/control/placement";
import { serverNow } from "../../../../core/postgres";
import { WritesPage } from "../../../../views/base/writes";
import { onOneBase } from "../../base-page";
import type { ConsoleContext } from "../../page-kit";
import { LISTED_ON_PAGE } from "../../schemas/parts";
import { cachedTables } from "../../shape-cache";

export function writePages(ctx: ConsoleContext) {
  const { db } = ctx;
  return new Elysia({ name: "write-pages", detail: { hide: true } })
    .use(onOneBase(ctx))
    .get("/bases/:id/writes", async ({ base, basePage }) => {
      const users = await listSqlUsers(db, base.database.id);
      const [unknown, { writes: latest, unread }] = await Promise.all([
        listWrites(ctx, base.id, { isUnknown: true, limit: LISTED_ON_PAGE }),
        listAllWrites(ctx, base, LISTED_ON_PAGE),
      ]);
      const tables = await cachedTables(ctx, base);
      const isUnknown = new Set(unknown.map(({ set, position }) => `${set} ${position}`));
      const others = latest.filter(({ set, position }) => !isUnknown.has(`${set} ${position}`));
      return basePage(
        { place: "proxy", title: "Writes with SQL" },
        <WritesPage
          base={base}
          writes={[...unknown, ...others]}
          unread={unread?.message}
          users={new Map(users.map(({ role, name }) => [role, name]))}
          tables={new Map(tables.map(({ tableId, name }) => [tableId, name]))}
          now={serverNow(base)}
        />,
      );
    });
}
