/**
 * Takes out of a page what the role of its reader does not allow: forms, and links to pages that would refuse. The
 * routes refuse them all the same; this keeps readers from finding out by a click.
 *
 * V1. What stays is decided by the rules of the routes (`access.ts`), so a new form needs nothing here.
 */
import { can, type Role } from "../../core/control/accounts";
import { permissionFor } from "./access";

/** Pages that only ask for a confirmation: a link to one is as good as its form. */
const CONFIRMATION = /\/(delete|revoke|rotate|sync)$/;
/** Settings stay, for reading. */
const SETTING = /^\/bases\/[^/]+\/settings\/[^/]+$/;
/** The sections of a base's settings that have nothing to read. */
const WRITERS_SECTIONS = ["key", "end"];
/** A form that opens by a button, without its form. */
const EMPTY_PANEL =
  /<details\b[^>]*class="form-panel"[^>]*><summary\b[^>]*>[^<]*<\/summary><div class="card">\s*<\/div><\/details>/g;

/** Whether pages of a reader with this role must be cut. */
export function isCut(role: Role): boolean {
  return !can(role, "write");
}

/** @param html a page or a fragment; in a page, the forms outside `main` are for everyone */
export function cutForRole(html: string, role: Role): string {
  const within = html.startsWith("<!doctype") ? "main " : "";
  const mayPost = (path: string) => can(role, permissionFor("POST", routeOf(path)));
  const mayOpen = (path: string) =>
    can(role, permissionFor("GET", routeOf(path))) && (!CONFIRMATION.test(path) || mayPost(path));
  const rewriter = new HTMLRewriter()
    .on(`${within}form[method="post"]`, {
      element(form) {
        const path = pathIn(form.getAttribute("action"));
        if (!mayPost(path) && !SETTING.test(path)) form.remove();
      },
    })
    // Some ask first, by GET.
    .on(`${within}form[action*="/settings/"]`, {
      element(form) {
        form.tagName = "div";
        for (const name of ["method", "action"]) form.removeAttribute(name);
      },
    })
    .on(`${within}a[href^="/"]`, {
      element(link) {
        if (mayOpen(pathIn(link.getAttribute("href")))) return;
        const isControl = /\bbutton\b/.test(link.getAttribute("class") ?? "") || link.hasAttribute("role");
        if (isControl) link.remove();
        else link.removeAndKeepContent();
      },
    })
    .on(`${within}:not(a, input)[hx-get]`, {
      element(part) {
        if (!mayOpen(pathIn(part.getAttribute("hx-get")))) part.remove();
      },
    })
    .on(`${within}form[action*="/settings/"] button`, { element: remove });
  rewriter.on("[data-href]", {
    element(shortcut) {
      if (!mayOpen(pathIn(shortcut.getAttribute("data-href")))) shortcut.remove();
    },
  });
  for (const input of ["input", "textarea", "select"]) {
    rewriter.on(`${within}form[action*="/settings/"] ${input}`, { element: disable });
  }
  for (const id of WRITERS_SECTIONS) {
    rewriter.on(`${within}.settings #${id}`, { element: remove });
    rewriter.on(`${within}.section-index a[href="#${id}"]`, { element: remove });
  }
  return rewriter.transform(html).replace(EMPTY_PANEL, "");
}

/** The pattern of a page's route, as far as the rules distinguish routes. */
export function routeOf(path: string): string {
  return path
    .replace(/^\/bases\/[^/]+/, "/bases/:id")
    .replace(/^(\/account\/members)\/[^/]+\/remove$/, "$1/:id/remove");
}

function remove(element: HTMLRewriterTypes.Element): void {
  element.remove();
}

function disable(input: HTMLRewriterTypes.Element): void {
  input.setAttribute("disabled", "");
  for (const name of ["hx-get", "hx-post"]) input.removeAttribute(name);
}

function pathIn(url: string | null): string {
  return (url ?? "").replace(/[?#].*$/s, "");
}
