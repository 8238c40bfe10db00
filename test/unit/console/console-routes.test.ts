import { expect, test } from "vitest";
import { publicConsole } from "../../support/api-description";
import { notPages, pageRoutes } from "../../support/console-pages";

test("every page is measured: a new route is a page with an address, or is listed as none", () => {
  const routes = publicConsole.routes.filter(
    ({ method, path }) => method === "GET" && !path.startsWith("/api/"),
  );
  const paths = [...new Set(routes.map(({ path }) => path))];
  expect([...pageRoutes, ...notPages].toSorted()).toEqual(paths.toSorted());
});
