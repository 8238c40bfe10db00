/**
 * A resource is one object: how it is found, its pages, and its operations. From an operation follow its route in the API,
 * its entry in the API's reference, its form, and the question before it.
 *
 * R1. An operation is said once: the API's request and the console's form end in the same `run`, with the same body.
 * R2. Who may run it is decided by the address (`access.ts`), so that a new one is never open to more than the rule there.
 */
import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { VNode } from "preact";
import type { Actor } from "../../../core/context";
import type { Account, CurrentUser, Role } from "../../../core/control/accounts";
import { type Base, getBase } from "../../../core/control/bases";
import type { ErrorCode } from "../../../core/errors";
import type { Confirmation, FormFields, FormState, Typed } from "../../../views/components";
import type { Flash } from "../flash";
import type { ConsoleContext, PageFacts } from "../page-kit";
import type { Shown } from "./json";
import type { ReadForm } from "./read-form";

/** Who asks: a member in the console, or a token. */
export interface Asker {
  account: Account;
  role: Role;
  actor: Actor;
  /** The member, or who created the token: what they make and see may end with their membership. Null: the operator. */
  userId: string | null;
  /** Null: a token. */
  user: CurrentUser | null;
}

export type RunContext = ConsoleContext & { actor: Actor };
/** By the names in the address. */
export type Params = { [name: string]: string } & { id: string };

interface Operation<Target, Input extends TSchema, Answer extends TSchema, Result> {
  /** Its route, such as `DELETE /api/v1/workspaces/:id`; without one it is only in the console. */
  api?: `${"GET" | "POST" | "PATCH" | "PUT" | "DELETE"} /api/v1/${string}`;
  /** For the API's reference. */
  summary?: string;
  description?: string;
  /** Errors that the form of the request does not imply. */
  raises?: readonly ErrorCode[];
  /** Of the answer; default 200, and 204 without an answer. */
  status?: 201 | 202;
  /** What the status 204 means: `Deleted`. */
  gone?: string;
  body?: Input;
  /** Instead of a body, for a GET. */
  query?: Input;
  answer?: Answer;
  /** Instead of JSON: `run` returns a text of this media type. */
  text?: { type: string; description: string };
  /** @param input the body, or the query */
  run(ctx: RunContext, target: Target, input: Static<Input>, by: Asker): Promise<Result>;
  form?: OperationForm<Target, Static<Input>, Result>;
}

interface OperationForm<Target, Body, Result> {
  /** The address to which it is posted. With `asks`, a GET of it is the question. */
  path: string;
  /** With a function, those of the target. */
  fields?: FormFields | ((ctx: ConsoleContext, target: Target) => Promise<FormFields>);
  /** What the form always sends, for one without fields. */
  body?: Body;
  /** Where the form says it in other words than the API. Default: each field is a property of the body. */
  read?(typed: Typed, target: Target, by: Asker): ReadForm;
  /** The field next to which an error of the operation is shown. Without fields, the page shows it as `problem`. */
  errorAt?: string | ((typed: Typed) => string);
  /** The next page; `:id` stands for the id in the address. */
  to: string | ((result: Result, target: Target) => string);
  done: string | ((result: Result, target: Target) => string | Flash);
  /** The question before it, and the page to return to. */
  asks?(target: Target, ctx: ConsoleContext): Question | Promise<Question>;
}

type Question = Pick<Confirmation, "title" | "effect" | "button" | "back" | "isDanger">;

/** What a page shows besides its target. */
export interface PageState {
  /** The form that was rejected. */
  form?: FormState;
  /** Why an operation without fields failed. */
  problem?: string | undefined;
  /** What the form before this page left for it alone. */
  once: Record<string, string | undefined>;
  user: CurrentUser;
  query: Record<string, string | undefined>;
}

export interface ResourcePage<Target> {
  path: string;
  title: string | ((target: Target) => string);
  /** Null: what it is about was deleted a moment ago. */
  show(ctx: ConsoleContext, target: Target, state: PageState): Promise<VNode | null>;
}

interface About<Scope, One extends object> {
  /** The part of the API's reference. */
  tag: string;
  /** The ids in its addresses. */
  params?: TObject;
  /** What the resource is part of: an account, or a base. @throws BasetideError `not_found` */
  scope(ctx: ConsoleContext, by: Asker, params: Params): Promise<Scope> | Scope;
  /** One of them. @throws BasetideError `not_found` */
  find?(ctx: ConsoleContext, scope: Scope, params: Params): Promise<One>;
  console?: {
    /** What the layout knows: the section of the sidebar, the base. */
    facts(scope: Scope): Pick<PageFacts, "active" | "base">;
    /** What is around the pages and the questions. */
    frame(scope: Scope, content: VNode): VNode;
    all?: ResourcePage<Scope>;
    one?: ResourcePage<One>;
  };
}

/** An operation on all of a resource, or on one of them. The kinds of its parts are known where it is written. */
// biome-ignore lint/suspicious/noExplicitAny: each operation has types of its own
export type AnyOperation = Operation<any, any, any, any> & { isOnOne: boolean };

// biome-ignore lint/suspicious/noExplicitAny: each resource has types of its own
export interface AnyResource extends About<any, any> {
  operations: AnyOperation[];
}

interface Resource<Scope, One extends object> extends AnyResource {
  /** Adds an operation on all: a list, or what makes another one. */
  all<Input extends TSchema, Answer extends TSchema, Result extends Shown<Static<Answer>>>(
    operation: Operation<Scope, Input, Answer, Result>,
  ): Resource<Scope, One>;
  /** Adds an operation on one of them. */
  one<Input extends TSchema, Answer extends TSchema, Result extends Shown<Static<Answer>>>(
    operation: Operation<One, Input, Answer, Result>,
  ): Resource<Scope, One>;
}

export function resource<Scope, One extends object>(about: About<Scope, One>): Resource<Scope, One> {
  const operations: AnyOperation[] = [];
  const made: Resource<Scope, One> = {
    ...about,
    operations,
    all(operation) {
      operations.push({ ...operation, isOnOne: false });
      return made;
    },
    one(operation) {
      operations.push({ ...operation, isOnOne: true });
      return made;
    },
  };
  return made;
}

/** The scope of what belongs to the account as a whole. */
export const ofAccount = (_: ConsoleContext, { account }: Asker): Account => account;

/** The scope of what belongs to the base with the address' `:id`. */
export const ofBase = ({ db }: ConsoleContext, { account }: Asker, { id }: Params): Promise<Base> =>
  getBase(db, id, account.id);
