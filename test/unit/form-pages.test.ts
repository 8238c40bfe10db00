/** Every form of the console has a page, and a GET of the form's address leads there. */
import { expect, test } from "vitest";
import { publicConsole } from "../support/api-description";

const routes = publicConsole.routes.map(({ method, path }) => ({
  method,
  path: path.replace(/(?<=.)\/$/, ""),
}));
const pathsOf = (method: string) => routes.filter((one) => one.method === method).map(({ path }) => path);
const pages = new Set(pathsOf("GET"));
const forms = pathsOf("POST").filter((path) => !pages.has(path) && !/^\/(api|hooks)\//.test(path));

const get = (path: string, headers: Record<string, string> = { accept: "text/html" }) =>
  publicConsole.handle(new Request(`http://localhost${path}`, { headers }));
const filled = (path: string) => path.replace(/:\w+/g, "1");

test("there are forms without a page at their address", () => {
  expect(forms).toContain("/bases/:id/key");
  expect(forms.length).toBeGreaterThan(15);
});

test.each(forms)("a GET of %s leads to a page", async (form) => {
  const answer = await get(filled(form));
  expect(answer.status).toBe(303);
  const target = answer.headers.get("location")!;
  expect([...pages].map(filled)).toContain(target);
  expect((await get(filled(form), { accept: "application/json" })).status).not.toBe(303);
});

test("a form's page is the one that shows it, with the ids of the address", async () => {
  const targets = {
    "/bases/bas_7/key": "/bases/bas_7/settings",
    "/bases/bas_7/pause": "/bases/bas_7",
    "/bases/bas_7/connect/rotate": "/bases/bas_7/connect",
    "/bases/bas_7/sql-users": "/bases/bas_7/connect",
    "/bases/bas_7/sql/saved/q1/delete": "/bases/bas_7/sql",
    "/account/alerts/webhooks/wh_1/test": "/account/alerts/webhooks/wh_1",
    "/account/invitations/inv_1/withdraw": "/account/members",
    "/sign-out": "/",
  };
  for (const [form, page] of Object.entries(targets))
    expect((await get(form)).headers.get("location"), form).toBe(page);
});

test("no page is taken for a form", async () => {
  const literal = [...pages].filter((path) => !path.includes(":") && !path.includes("*"));
  for (const path of literal) {
    const target = forms.find((form) => new RegExp(`^${form.replace(/:\w+/g, "[^/]+")}$`).test(path));
    expect(target, path).toBeUndefined();
  }
});
