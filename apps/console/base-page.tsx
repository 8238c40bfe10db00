/** What is around the pages of a base. */
import { Elysia } from "elysia";
import type { VNode } from "preact";
import { type Base, getBase } from "../../core/control/bases";
import { BaseFrame } from "../../views/base/frame";
import type { BasePlace } from "../../views/base/pages";
import { admitted, type ConsoleContext, type PageCall } from "./page-kit";

/** @param place the page of the base that is marked as the current one */
export const onBase = (place: BasePlace) => ({
  facts: (base: Base) => ({ active: "bases" as const, base }),
  frame: (base: Base, content: VNode) => (
    <BaseFrame base={base} place={place}>
      {content}
    </BaseFrame>
  ),
});

interface BasePageFacts {
  place: BasePlace;
  title: string;
  status?: number | undefined;
}

export interface BaseCall extends PageCall {
  base: Base;
  /** Answers with a page of the base. */
  basePage(facts: BasePageFacts, view: VNode): Response;
}

/** Pages for signed-in users of one base, which an address names as `:id`: provides `base` and `basePage`, too. */
export function onOneBase(ctx: ConsoleContext) {
  return new Elysia({ name: "on-one-base" }).derive({ as: "scoped" }, async (call) => {
    const user = await admitted(ctx, call);
    const { id } = call.params as { id: string };
    const base = await getBase(ctx.db, id, user.account.id);
    const basePage: BaseCall["basePage"] = ({ place, title, status }, view) => {
      const { facts, frame } = onBase(place);
      return user.page({ ...facts(base), title: `${title} · ${base.name}`, status }, frame(base, view));
    };
    return { ...user, base, basePage };
  });
}
