/** What is around the pages of a base. */
import type { VNode } from "preact";
import type { CurrentUser } from "../../core/control/accounts";
import type { Base } from "../../core/control/bases";
import { BaseFrame } from "../../views/base/frame";
import type { BasePlace } from "../../views/base/pages";
import { answer } from "./page-kit";

/** @param place the page of the base that is marked as the current one */
export const onBase = (place: BasePlace) => ({
  facts: (base: Base) => ({ active: "bases" as const, base }),
  frame: (base: Base, content: VNode) => (
    <BaseFrame base={base} place={place}>
      {content}
    </BaseFrame>
  ),
});

/** Answers with a page of a base. */
export function answerOnBase(
  request: Request,
  currentUser: CurrentUser,
  base: Base,
  { place, title, status }: { place: BasePlace; title: string; status?: number | undefined },
  view: VNode,
): Response {
  const { facts, frame } = onBase(place);
  const page = { ...facts(base), title: `${title} · ${base.name}`, currentUser, status };
  return answer(request, page, frame(base, view));
}
