/** The pages of a resource, the forms of its operations, and the questions before them. */
import { Elysia } from "elysia";
import { Confirm } from "../../../views/components";
import { isHtmx } from "../../../views/render";
import { formResultOf } from "../form-error";
import { type ConsoleContext, finish, goTo, onceOf, type PageCall, signedIn } from "../page-kit";
import { bodyOfTyped, faultsOf, typedIn } from "./read-form";
import type { AnyOperation, AnyResource, PageState, Params, ResourcePage } from "./resource";

interface ResourceCall extends PageCall {
  params: Params;
  query: Record<string, string | undefined>;
  body: unknown;
}

type Add = (path: string, run: (call: ResourceCall) => Promise<Response>) => void;
interface Routes {
  get: Add;
  post: Add;
}

export function pagesOf(ctx: ConsoleContext, about: AnyResource) {
  const { all, one, facts, frame } = about.console!;
  const app = new Elysia({ detail: { hide: true } }).use(signedIn(ctx));
  const routes = app as unknown as Routes;
  for (const page of [all, one]) {
    if (page) routes.get(page.path, async (call) => show(call, page, await targetOf(call, page === one)));
  }
  for (const operation of about.operations) {
    const { form, isOnOne } = operation;
    if (!form) continue;
    routes.post(form.path, async (call) => send(call, operation, await targetOf(call, isOnOne), call.body));
    if (form.asks) routes.get(form.path, async (call) => ask(call, operation, await targetOf(call, isOnOne)));
  }
  return app;

  async function targetOf(call: ResourceCall, isOne: boolean) {
    const { params } = call;
    const scope = await about.scope(ctx, callerOf(call), params);
    return { scope, target: isOne ? await about.find!(ctx, scope, params) : scope };
  }

  // biome-ignore lint/suspicious/noExplicitAny: of the resource
  type Found = { scope: any; target: any };

  async function show(
    { request, currentUser, query, page: answer }: ResourceCall,
    // biome-ignore lint/suspicious/noExplicitAny: of the resource
    page: ResourcePage<any>,
    { scope, target }: Found,
    shown: Pick<PageState, "form" | "problem"> = {},
    status = 200,
  ) {
    const state = { ...shown, once: onceOf(request), user: currentUser, query };
    const view = await page.show(ctx, target, state);
    if (view === null) return goTo(request, all?.path ?? "/bases");
    const title = typeof page.title === "string" ? page.title : page.title(target);
    return answer({ ...facts(scope), title, status }, frame(scope, view));
  }

  /** Carries out an operation; after an error, shows the page with the form as it was sent. */
  async function send(call: ResourceCall, operation: AnyOperation, found: Found, sent: unknown) {
    const { request, params } = call;
    const form = operation.form!;
    const by = callerOf(call);
    const page = operation.isOnOne ? one : all;
    const fields = typeof form.fields === "function" ? await form.fields(ctx, found.target) : form.fields;
    const typed = fields ? typedIn(fields, sent) : {};
    const read = form.read?.(typed, found.target, by) ?? bodyOfTyped(fields ?? {}, typed);
    const body = fields ? read.body : form.body;
    const shown = read.typed ?? typed;
    const faults = operation.body && fields ? faultsOf(fields, operation.body, body) : {};
    const errors = { ...faults, ...read.errors };
    if (fields && Object.keys(errors).length > 0) {
      return show(call, page!, found, { form: { fields, typed: shown, errors } }, 422);
    }
    const run = () => operation.run(call.by, found.target, body, by);
    const { failed, value: result } =
      form.errorAt === undefined ? { value: await run() } : await formResultOf(run);
    if (failed && page) {
      const { message, status } = failed;
      if (!fields) return show(call, page, found, { problem: message }, status);
      const at = typeof form.errorAt === "function" ? form.errorAt(typed) : form.errorAt!;
      return show(call, page, found, { form: { fields, typed: shown, errors: { [at]: message } } }, status);
    }
    const to = typeof form.to === "function" ? form.to(result, found.target) : filled(form.to, params);
    return finish(request, to, typeof form.done === "function" ? form.done(result, found.target) : form.done);
  }

  async function ask(
    { request, params, page }: ResourceCall,
    { form }: AnyOperation,
    { scope, target }: Found,
  ) {
    const { back, ...question } = await form!.asks!(target, ctx);
    const addresses = { action: filled(form!.path, params), back: filled(back, params) };
    const isDialog = isHtmx(request);
    const content = <Confirm {...question} {...addresses} isDialog={isDialog} />;
    return page({ ...facts(scope), title: question.title }, isDialog ? content : frame(scope, content));
  }
}

function callerOf({ account, currentUser, by: { actor } }: ResourceCall) {
  return { account, role: account.role, actor, userId: currentUser.userId, user: currentUser };
}

function filled(path: string, params: Params): string {
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
}
