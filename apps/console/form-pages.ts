/**
 * Leads from an address that only takes a form to the page with the form. The answer to a rejected form has the form's
 * address, so a reload of it, or its bookmark, is a GET.
 */
import { pathOf } from "../../core/http";
import { isForPerson } from "./page-error";

/** Pages of forms that are not at the nearest page above the form's address. */
const elsewhere: Record<string, string> = {
  "/bases/:id/key": "/bases/:id/settings",
  "/bases/:id/workspace": "/bases/:id/settings",
  "/bases/:id/sql-users": "/bases/:id/connect",
  "/account/invitations/:id/withdraw": "/account/members",
};
/** Addresses of programs, which have no page. */
const PROGRAMS = /^\/(api|hooks)\//;

interface Route {
  method: string;
  path: string;
}

interface FormPage {
  /** Matches the form's address. */
  pattern: RegExp;
  /** The pattern of the page's path. */
  page: string;
}

/** @returns what finds the path of the page for a GET of a form's address; undefined for all other requests */
export function formPages(routes: Route[]): (request: Request) => string | undefined {
  const pages = pagesOfForms(routes);
  return (request) => {
    if (request.method !== "GET" || !isForPerson(request)) return undefined;
    const path = pathOf(request);
    for (const { pattern, page } of pages) {
      const found = pattern.exec(path);
      if (found) return page.replace(/:(\w+)/g, (_, name: string) => found.groups?.[name] ?? "");
    }
    return undefined;
  };
}

function pagesOfForms(routes: Route[]): FormPage[] {
  const pathsOf = (method: string) =>
    new Set(routes.filter((one) => one.method === method).map(({ path }) => path.replace(/(?<=.)\/$/, "")));
  const shown = pathsOf("GET");
  return [...pathsOf("POST")]
    .filter((path) => !shown.has(path) && !PROGRAMS.test(path))
    .map((path) => ({
      pattern: new RegExp(`^${path.replace(/:(\w+)/g, "(?<$1>[^/]+)")}/?$`),
      page: elsewhere[path] ?? nearestPage(path, shown),
    }));
}

function nearestPage(path: string, shown: Set<string>): string {
  const parent = path.slice(0, path.lastIndexOf("/"));
  if (parent === "") return "/";
  return shown.has(parent) ? parent : nearestPage(parent, shown);
}
