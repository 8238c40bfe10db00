/**
 * Renders a view to a response: markup as a string, with the headers of every page.
 *
 * Preact escapes everything except our own markup; nothing here or in a view may bypass that.
 */
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";

/** No inline script or style, nothing from other hosts, no framing. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** For every answer of the console, pages and assets alike. */
export const securityHeaders: Record<string, string> = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  // Not `no-referrer`: with that, browsers send `Origin: null` with a form, and the origin check would reject it.
  "referrer-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** For every page and fragment. */
export const pageHeaders: Record<string, string> = {
  "content-type": "text/html; charset=utf-8",
  // Pages show data of one account: no cache stores them, not even the browser's.
  "cache-control": "no-store",
  vary: "HX-Request, HX-Request-Type, Cookie",
  ...securityHeaders,
};

export interface RenderOptions {
  /** Default 200. */
  status?: number | undefined;
  headers?: Record<string, string> | undefined;
}

/** A whole page: `node` is the `<html>` element. */
export function renderPage(node: VNode, options: RenderOptions = {}): Response {
  return respond(pageText(node), options);
}

/** The text of a whole page, to be answered more than once. */
export function pageText(node: VNode): string {
  return `<!doctype html>${renderToString(node)}`;
}

/** One fragment, for htmx to insert. */
export function renderFragment(node: VNode, options: RenderOptions = {}): Response {
  return respond(renderToString(node), options);
}

/** Whether htmx asks for a fragment. A browser, and an htmx request for the whole body, gets the page. */
export function isHtmx(request: Request): boolean {
  return request.headers.get("hx-request") === "true" && request.headers.get("hx-request-type") !== "full";
}

function respond(text: string, { status = 200, headers = {} }: RenderOptions): Response {
  return new Response(text, { status, headers: { ...pageHeaders, ...headers } });
}
